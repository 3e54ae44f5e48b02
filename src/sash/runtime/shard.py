"""One shard of one stage: rows come in, wait until the clock allows, run through the operators, and changes come out.

The clock of an input means that every row before it is here; the stage's clock is the smallest of them, and only
instants before it are released. Rows ahead of it wait in a spool; a row behind its own stream's clock is late: it is
counted and dropped, never applied wrongly. An update of a relation is not dropped, for the relation would stay wrong: one
that comes behind the shard's clock is counted as late and takes effect at the clock. A relation that nobody waits for
does not hold the clock back; where a shard has nothing but such, its clock is just past the latest update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sash.operators.base import Operator
from sash.operators.netting import net
from sash.operators.window import assign
from sash.physical.lending import lends
from sash.physical.narrowing import narrow_joins
from sash.physical.nodes import Operation, PhysicalPlan, RelationLeg, Stage, StreamLeg, UpdateLeg, walk
from sash.physical.strategies.clock_triggered import CLOCK_TRIGGERED
from sash.physical.strategies.registry import strategy_of
from sash.plan.nodes import Window
from sash.runtime.build import Relations, build
from sash.runtime.pacing import Listening, Pacing
from sash.state.buffer import Buffer
from sash.state.changes import ChangeBatch, concat
from sash.state.hashing import hash_rows, shards_of
from sash.state.memory import Memory
from sash.state.spool import Spool
from sash.time import BEGINNING, FOREVER

SLICE = 1 << 15
"""About how many rows of its busiest input a shard works on at a time."""


@dataclass
class Counts:
    """Rows, positive and negative, that an operator took in and put out; the time messages that it heard, and how many rows
    expired in its buffers; the rows it looked at to find matches (a multi-way join counts them); those it took back before
    their time, the rows that it left out because they took back what was not there, and by shard what it does at present that
    it may do otherwise, and why."""

    taken: int = 0
    taken_negative: int = 0
    given: int = 0
    given_negative: int = 0
    messages: int = 0
    expired: int = 0
    probes: int = 0
    premature: int = 0
    refused: int = 0
    in_force: dict[int, tuple[str, str]] = field(default_factory=dict)

    def note(self, inputs: Sequence[ChangeBatch], output: ChangeBatch, expired: int) -> None:
        """Count one call of the operator."""
        for batch in inputs:
            self.taken += len(batch)
            self.taken_negative += int(np.count_nonzero(batch.sign < 0))
        self.given += len(output)
        self.given_negative += int(np.count_nonzero(output.sign < 0))
        self.expired += expired

    def add(self, other: Counts) -> None:
        """Add what another count has."""
        self.taken += other.taken
        self.taken_negative += other.taken_negative
        self.given += other.given
        self.given_negative += other.given_negative
        self.messages += other.messages
        self.expired += other.expired
        self.probes += other.probes
        self.premature += other.premature
        self.refused += other.refused
        self.in_force.update(other.in_force)


@dataclass(frozen=True)
class Arrival:
    """What one input brought in a batch: its rows (a stream's carry their own time as `ts`), and its clock."""

    rows: ChangeBatch
    clock: int


@dataclass(frozen=True)
class Taken:
    """What a shard took in of a batch: the rows it accepted per input, how many came too late, what it can release now
    and up to which clock; and what its operators did, once it has."""

    accepted: tuple[ChangeBatch, ...]
    late: int
    ready: tuple[ChangeBatch, ...]
    clock: int
    counts: dict[str, Counts] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a shard made of a batch: its changes, and the clock before which there will be no others."""

    changes: ChangeBatch
    taken: Taken
    clock: int


class Shard:
    """The operators of a stage attached to one memory. A shard made anew on the same memory goes on."""

    def __init__(
        self, plan: PhysicalPlan, stage: Stage, memory: Memory, relations: Relations, shard: int = 0, shards: int = 1
    ) -> None:
        self._stage = stage
        self._number = shard
        self._tau = plan.tau
        self._windows: list[Window | None] = []
        self._updates: list[bool] = []
        self._constant: dict[int, ChangeBatch] = {}
        for index, given in enumerate(stage.inputs):
            leg = None if given.leaf.leg is None else plan.legs[given.leaf.leg]
            self._windows.append(leg.window if isinstance(leg, StreamLeg) else None)
            self._updates.append(isinstance(leg, UpdateLeg))
            if isinstance(leg, RelationLeg):
                self._constant[index] = relation_rows(relations, leg, given.keys, shard, shards)
        self._clocks = memory.array("clocks", np.int64, len(stage.inputs) + 1)
        self._begun = memory.array("begun", np.int64, 1)
        if not self._begun[0]:
            self._clocks[:] = BEGINNING
        dtypes = [[column.dtype for column in given.leaf.schema] for given in stage.inputs]
        self._nothing = [ChangeBatch.empty(types) for types in dtypes]
        self._spools = [Spool(memory.scope(f"wait{index}"), types) for index, types in enumerate(dtypes)]
        self._awaited = np.array([not given.leaf.follows for given in stage.inputs])
        self._changing = np.array([index not in self._constant for index in range(len(stage.inputs))])
        self._follows_only = bool(self._changing.any() and not (self._awaited & self._changing).any())
        self._order = [node for node in walk(stage.root) if isinstance(node, Operation)]
        self._names = [f"{index}.{node.operator}" for index, node in enumerate(self._order)]
        strategy = strategy_of(plan.strategy)
        built = {} if strategy.paced else narrow_joins(self._order)
        made: dict[int, Operator] = {}
        for node, name in zip(self._order, self._names, strict=True):
            shared = tuple(
                made[id(child)].shared_rows() if lends(strategy, node, child) else None for child in node.inputs
            )
            made[id(node)] = build(built.get(id(node), node), memory.scope(name), relations, plan.partitions, shared)
        self._operators = list(made.values())
        self._synchronised = strategy is not CLOCK_TRIGGERED
        self._pacing = Pacing(memory.scope("pacing"), self._order, strategy) if strategy.paced else None
        self._listening = Listening(memory.scope("ears"), self._order, strategy) if strategy.messages else None

    @property
    def clock(self) -> int:
        """Every instant before this has been released."""
        return int(self._clocks[-1])

    @property
    def clocks(self) -> tuple[int, ...]:
        """The clock of every input."""
        return tuple(int(clock) for clock in self._clocks[:-1])

    @property
    def released(self) -> int:
        """Every change before this has left: the clock, unless the last operator has not heard of it."""
        return self.clock if self._pacing is None else self._pacing.progress(id(self._stage.root))

    @property
    def reached(self) -> list[int] | None:
        """How far every operator is, where they do not all hear the clock."""
        return None if self._pacing is None else self._pacing.reached

    @property
    def floor(self) -> int:
        """No operator needs a row any more that had expired before this."""
        return min(self.clock, *(self.reached or (self.clock,)))

    @property
    def switches(self) -> int:
        """How often an edge has changed the way in which it passes the time on."""
        return 0 if self._listening is None else self._listening.switches

    @property
    def state_rows(self) -> int:
        """How many rows the operators remember, and how many wait."""
        return sum(operator.state_rows for operator in self._operators) + self.waiting

    @property
    def operators(self) -> Sequence[Operator]:
        """The operators, in the order in which they run."""
        return self._operators

    @property
    def operator_rows(self) -> dict[str, int]:
        """How many rows each operator remembers."""
        return {name: operator.state_rows for name, operator in zip(self._names, self._operators, strict=True)}

    def operator_bytes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """How many bytes each operator's arrays take, given those of all arrays of the memory by name."""
        return {
            name: sum(size for array, size in sizes.items() if array.startswith(f"{name}.")) for name in self._names
        }

    @property
    def waiting(self) -> int:
        """How many rows wait for the clock."""
        return sum(spool.rows for spool in self._spools) + (0 if self._pacing is None else self._pacing.waiting)

    def run(self, arrivals: Sequence[Arrival | None]) -> Outcome:
        """Take in one batch per input (None: nothing heard from it) and release what the clock allows."""
        taken = self.take(arrivals)
        changes = concat(list(self.release(taken)))
        return Outcome(changes, taken, self.released)

    def flush(self) -> ChangeBatch:
        """The changes that operators have not noticed so far, because nothing told them of the time."""
        if self._pacing is None:
            return ChangeBatch.empty([column.dtype for column in self._stage.root.schema])
        return self._evaluate(self._nothing, self.clock, {}, everything=True)

    def take(self, arrivals: Sequence[Arrival | None]) -> Taken:
        """Take in one batch per input; late rows are left out, late updates of relations are put off to the clock."""
        accepted, late = [], 0
        for index, (arrival, window) in enumerate(zip(arrivals, self._windows, strict=True)):
            rows = self._nothing[index]
            if arrival is not None:
                rows = arrival.rows
                if window is not None:
                    behind = rows.ts < self._clocks[index]
                    if behind.any():
                        late += int(np.count_nonzero(behind))
                        rows = rows.take(np.flatnonzero(~behind))
                elif self._updates[index] or self._stage.inputs[index].leaf.follows:
                    late += int((rows.ts < self.clock).sum()) if self._stage.inputs[index].leaf.timed else 0
                    rows = ChangeBatch(np.maximum(rows.ts, self.clock), rows.exp, rows.sign, rows.columns)
            accepted.append(rows)
        return self._place(accepted, [None if a is None else a.clock for a in arrivals], late)

    def restore(self, live: Sequence[ChangeBatch], clocks: Sequence[int], reached: Sequence[int] | None = None) -> None:
        """Rebuild the state of an empty shard from the live rows it had accepted and the clocks it had reached.

        Of a shard as it once was: from those it has accepted since. None of them counts as late, and those that still
        wait go on waiting. `reached` is how far its operators were, where they do not all hear the clock.
        """
        if self._pacing is not None:
            self._pacing.hold(reached)
        for _ in self.release(self._place(live, clocks, 0)):
            pass
        if self._pacing is not None:
            self._pacing.hold(None)

    def _place(self, accepted: Sequence[ChangeBatch], clocks: Sequence[int | None], late: int) -> Taken:
        """Set the clocks and sort the rows into those that are ready and those that wait."""
        for index, clock in enumerate(clocks):
            if index in self._constant:
                self._clocks[index] = FOREVER
            elif clock is not None:
                self._clocks[index] = max(int(self._clocks[index]), clock)
        clock = self._reached(self._shard_clock())
        ready = []
        for index, (came, window) in enumerate(zip(accepted, self._windows, strict=True)):
            rows = self._constant[index] if index in self._constant and not self._begun[0] else came
            placed = rows if window is None else assign(window, rows)
            released = self._release(self._spools[index], self._in_time(placed), clock)
            # Changes that were put off to one instant may take back one another.
            put_off = self._stage.inputs[index].leaf.follows and not self._updates[index]
            ready.append(net(released) if put_off else released)
        self._begun[0] = 1
        self._clocks[-1] = max(clock, self.clock)
        return Taken(tuple(accepted), late, tuple(ready), self.clock)

    def _shard_clock(self) -> int:
        """Up to where all inputs that are waited for are complete; clock-triggered, as far as the first of them.

        Where none is waited for, just past the fastest.
        """
        clocks = self._clocks[:-1]
        if self._follows_only:
            return int(clocks[self._changing].max()) + (1 if any(self._updates) else 0)
        awaited = clocks[self._awaited]
        if self._synchronised:
            return int(awaited.min())
        heard = awaited[awaited < FOREVER]
        return int(heard.max()) if len(heard) else int(FOREVER)

    def _in_time(self, rows: ChangeBatch) -> ChangeBatch:
        """The rows as they are; clock-triggered, one that comes after its time is taken for one of now."""
        if self._synchronised or not len(rows) or rows.ts.min() >= self.clock:
            return rows
        delayed = ChangeBatch(np.maximum(rows.ts, self.clock), rows.exp, rows.sign, rows.columns)
        return delayed.take(np.flatnonzero(delayed.exp > delayed.ts))

    def release(self, taken: Taken) -> Iterator[ChangeBatch]:
        """Run the operators over what is ready, some instants at a time, and give their changes as they come.

        Slices keep the operators' arrays in the processor's cache, and let others work on what is already there: the first
        of several is short, so that they can begin.
        """
        longest = max((rows.ts for rows in taken.ready), key=len)
        starts = list(range(SLICE, len(longest) - SLICE // 2, SLICE))
        clocks = [int(longest[start]) for start in ([SLICE // 8, *starts] if starts else [])]
        begun = [0] * len(taken.ready)
        for clock in dict.fromkeys(clocks):
            ends = [int(np.searchsorted(rows.ts, clock, side="left")) for rows in taken.ready]
            slices = [rows.slice(a, b) for rows, a, b in zip(taken.ready, begun, ends, strict=True)]
            begun = ends
            yield self._evaluate(slices, clock, taken.counts)
        rest = [rows.slice(a, len(rows)) for rows, a in zip(taken.ready, begun, strict=True)]
        yield self._evaluate(rest, taken.clock, taken.counts)

    def _reached(self, clock: int) -> int:
        """The clock, or with tau the clock of the last re-execution: what is after it waits for the next."""
        if self._tau is None or clock in (BEGINNING, FOREVER):
            return clock
        return (clock - 1) // self._tau * self._tau + 1

    @staticmethod
    def _release(spool: Spool, rows: ChangeBatch, clock: int) -> ChangeBatch:
        """The rows before the clock, in order; the others wait."""
        together = (concat([spool.load(), rows]) if spool.rows else rows).sorted()
        split = int(np.searchsorted(together.ts, clock, side="left"))
        if spool.rows or split < len(together):
            spool.save(together.slice(split, len(together)))
        return together.slice(0, split)

    def _evaluate(
        self, ready: Sequence[ChangeBatch], clock: int, counts: dict[str, Counts], *, everything: bool = False
    ) -> ChangeBatch:
        leaves = [id(given.leaf) for given in self._stage.inputs]
        results: dict[int, ChangeBatch] = dict(zip(leaves, ready, strict=True))
        if self._pacing is not None:
            self._pacing.begin(leaves, clock)
        for number, (node, operator, name) in enumerate(zip(self._order, self._operators, self._names, strict=True)):
            inputs, until = [results[id(child)] for child in node.inputs], clock
            counted = counts.setdefault(name, Counts())
            if self._pacing is not None:
                inputs, until = self._pacing.admit(number, inputs, everything)
            if self._listening is not None:
                counted.messages += self._listening.hear(number, inputs, clock)
            before, probes, premature = Buffer.expired, operator.probes, operator.premature
            output = operator.process(inputs, until)
            results[id(node)] = output
            counted.note(inputs, output, Buffer.expired - before)
            counted.probes += operator.probes - probes
            counted.premature += operator.premature - premature
            counted.refused += operator.refused
            if (now := operator.in_force) is not None:
                counted.in_force[self._number] = now
        for operator in self._operators:
            operator.settle()
        return results[id(self._stage.root)]


def released_by(tau: int | None, ts: int) -> int:
    """The instant at which a change is released: its own, or with tau the next multiple, at which it is seen first."""
    return ts if tau is None else -(-ts // tau) * tau


def relation_rows(
    relations: Relations, leg: RelationLeg, keys: tuple[int, ...], shard: int, shards: int
) -> ChangeBatch:
    """The rows of a relation that belong to one shard, there from time 0."""
    table = relations[leg.node]
    rows = table.num_rows
    columns = tuple(table.column(index).combine_chunks() for index in range(table.num_columns))
    times = np.zeros(rows, np.int64)
    batch = ChangeBatch(times, np.full(rows, FOREVER), np.ones(rows, np.int8), columns)
    return partition(batch, keys, shards)[shard] if shards > 1 else batch


def partition(batch: ChangeBatch, keys: tuple[int, ...], shards: int) -> list[ChangeBatch]:
    """The batch split by the hash of its key columns; with no key columns everything is in shard 0."""
    if shards == 1:
        return [batch]
    if not keys:
        return [batch, *([batch.slice(0, 0)] * (shards - 1))]
    low, high = hash_rows([batch.columns[key] for key in keys], len(batch))
    owner = shards_of(low, high, shards)
    return [batch.take(np.flatnonzero(owner == shard)) for shard in range(shards)]
