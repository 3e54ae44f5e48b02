"""One shard of one stage: rows come in, wait until the clock allows, run through the operators, and changes come out.

The clock of an input means that every row before it is here; the stage's clock is the smallest of them, and only
instants before it are released. Rows ahead of it wait in a spool; a row behind its own stream's clock is late: it is
counted and dropped, never applied wrongly. An update of a relation is not dropped, for the relation would stay wrong: one
that comes behind the shard's clock is counted as late and takes effect at the clock. A relation that nobody waits for
does not hold the clock back; where a shard has nothing but such, its clock is just past the latest update.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from sash.operators.base import Operator
from sash.operators.netting import net
from sash.operators.window import assign
from sash.physical.nodes import Operation, PhysicalPlan, RelationLeg, Stage, StreamLeg, UpdateLeg, walk
from sash.physical.registry import Relations, build
from sash.plan.nodes import Unbounded, Window
from sash.state.changes import FOREVER, ChangeBatch, concat
from sash.state.hashing import hash_rows, shards_of
from sash.state.memory import Memory
from sash.state.spool import Spool

SLICE = 1 << 16
"""About how many rows of its busiest input a shard works on at a time."""

BEGINNING = -(2**62)
"""The clock of an input that has said nothing yet."""


@dataclass
class Counts:
    """Rows, positive and negative, that an operator took in and put out; `refused` are those that it left out."""

    taken: int = 0
    taken_negative: int = 0
    given: int = 0
    given_negative: int = 0
    refused: int = 0

    def note(self, inputs: Sequence[ChangeBatch], output: ChangeBatch, refused: int = 0) -> None:
        """Count one call of the operator."""
        self.add(
            Counts(
                sum(len(batch) for batch in inputs),
                sum(int((batch.sign < 0).sum()) for batch in inputs),
                len(output),
                int((output.sign < 0).sum()),
                refused,
            )
        )

    def add(self, other: Counts) -> None:
        """Add what another count has."""
        self.taken += other.taken
        self.taken_negative += other.taken_negative
        self.given += other.given
        self.given_negative += other.given_negative
        self.refused += other.refused


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
    """What a shard made of a batch: its changes, all before the clock of what it took in."""

    changes: ChangeBatch
    taken: Taken

    @property
    def clock(self) -> int:
        return self.taken.clock


class Shard:
    """The operators of a stage attached to one memory. A shard made anew on the same memory goes on."""

    def __init__(
        self, plan: PhysicalPlan, stage: Stage, memory: Memory, relations: Relations, shard: int = 0, shards: int = 1
    ) -> None:
        self._stage = stage
        self._windows: list[Window | None] = []
        self._updates: list[bool] = []
        self._constant: dict[int, ChangeBatch] = {}
        for index, given in enumerate(stage.inputs):
            leg = None if given.leaf.leg is None else plan.legs[given.leaf.leg]
            self._windows.append(leg.window if isinstance(leg, StreamLeg) else None)
            self._updates.append(isinstance(leg, UpdateLeg))
            if isinstance(leg, RelationLeg):
                self._constant[index] = _relation_rows(relations, leg, given.keys, shard, shards)
        self._clocks = memory.array("clocks", np.int64, len(stage.inputs) + 1)
        self._begun = memory.array("begun", np.int64, 1)
        if not self._begun[0]:
            self._clocks[:] = BEGINNING
        dtypes = [[column.dtype for column in given.leaf.schema] for given in stage.inputs]
        self._spools = [Spool(memory.scope(f"wait{index}"), types) for index, types in enumerate(dtypes)]
        self._order = [node for node in walk(stage.root) if isinstance(node, Operation)]
        self._names = [f"{index}.{node.operator}" for index, node in enumerate(self._order)]
        self._operators: list[Operator] = [
            build(node, memory.scope(name), relations) for node, name in zip(self._order, self._names, strict=True)
        ]

    @property
    def clock(self) -> int:
        """Every instant before this has been released."""
        return int(self._clocks[-1])

    @property
    def clocks(self) -> tuple[int, ...]:
        """The clock of every input."""
        return tuple(int(clock) for clock in self._clocks[:-1])

    @property
    def state_rows(self) -> int:
        """How many rows the operators remember, and how many wait."""
        return sum(operator.state_rows for operator in self._operators) + self.waiting

    @property
    def waiting(self) -> int:
        """How many rows wait for the clock."""
        return sum(spool.rows for spool in self._spools)

    def run(self, arrivals: Sequence[Arrival | None]) -> Outcome:
        """Take in one batch per input (None: nothing heard from it) and release what the clock allows."""
        taken = self.take(arrivals)
        return Outcome(concat(list(self.release(taken))), taken)

    def take(self, arrivals: Sequence[Arrival | None]) -> Taken:
        """Take in one batch per input; late rows are left out, late updates of relations are put off to the clock."""
        accepted, late = [], 0
        for index, (arrival, window) in enumerate(zip(arrivals, self._windows, strict=True)):
            rows = ChangeBatch.empty([column.dtype for column in self._stage.inputs[index].leaf.schema])
            if arrival is not None:
                rows = arrival.rows
                if window is not None:
                    kept = np.flatnonzero(rows.ts >= self._clocks[index])
                    late += len(rows) - len(kept)
                    rows = rows if len(kept) == len(rows) else rows.take(kept)
                elif self._updates[index] or self._stage.inputs[index].leaf.follows:
                    late += int((rows.ts < self.clock).sum()) if self._stage.inputs[index].leaf.timed else 0
                    rows = ChangeBatch(np.maximum(rows.ts, self.clock), rows.exp, rows.sign, rows.columns)
            accepted.append(rows)
        return self._place(accepted, [None if a is None else a.clock for a in arrivals], late)

    def restore(self, live: Sequence[ChangeBatch], clocks: Sequence[int]) -> None:
        """Rebuild the state of an empty shard from the live rows it had accepted and the clocks it had reached.

        Of a shard as it once was: from those it has accepted since. None of them counts as late, and those that still
        wait go on waiting.
        """
        for _ in self.release(self._place(live, clocks, 0)):
            pass

    def _place(self, accepted: Sequence[ChangeBatch], clocks: Sequence[int | None], late: int) -> Taken:
        """Set the clocks and sort the rows into those that are ready and those that wait."""
        for index, clock in enumerate(clocks):
            if index in self._constant:
                self._clocks[index] = FOREVER
            elif clock is not None:
                self._clocks[index] = max(int(self._clocks[index]), clock)
        clock = self._reached()
        ready = []
        for index, (came, window) in enumerate(zip(accepted, self._windows, strict=True)):
            rows = self._constant[index] if index in self._constant and not self._begun[0] else came
            placed = rows if window is None or isinstance(window, Unbounded) else assign(window, rows)
            released = self._release(self._spools[index], placed, clock)
            # Changes that were put off to one instant may take back one another.
            put_off = self._stage.inputs[index].leaf.follows and not self._updates[index]
            ready.append(net(released) if put_off else released)
        self._begun[0] = 1
        self._clocks[-1] = max(clock, self.clock)
        return Taken(tuple(accepted), late, tuple(ready), self.clock)

    def _reached(self) -> int:
        """The clock of the slowest input that is waited for; where there is none, just past that of the fastest."""
        follows = np.array([given.leaf.follows for given in self._stage.inputs])
        changing = np.array([index not in self._constant for index in range(len(follows))])
        if (follows & changing).any() and not (~follows & changing).any():
            return int(self._clocks[:-1][changing].max()) + (1 if any(self._updates) else 0)
        return int(self._clocks[:-1][~follows].min())

    def release(self, taken: Taken) -> Iterator[ChangeBatch]:
        """Run the operators over what is ready, some instants at a time, and give their changes as they come.

        Slices keep the operators' arrays in the processor's cache, and let others work on what is already there.
        """
        longest = max((rows.ts for rows in taken.ready), key=len)
        clocks = [int(longest[start]) for start in range(SLICE, len(longest) - SLICE // 2, SLICE)]
        begun = [0] * len(taken.ready)
        for clock in [*dict.fromkeys(clocks), taken.clock]:
            ends = [int(np.searchsorted(rows.ts, clock, side="left")) for rows in taken.ready]
            slices = [rows.slice(a, b) for rows, a, b in zip(taken.ready, begun, ends, strict=True)]
            begun = ends
            yield self._evaluate(slices, clock, taken.counts)

    @staticmethod
    def _release(spool: Spool, rows: ChangeBatch, clock: int) -> ChangeBatch:
        """The rows before the clock, in order; the others wait."""
        together = concat([spool.load(), rows]).sorted()
        split = int(np.searchsorted(together.ts, clock, side="left"))
        spool.save(together.slice(split, len(together)))
        return together.slice(0, split)

    def _evaluate(self, ready: Sequence[ChangeBatch], clock: int, counts: dict[str, Counts]) -> ChangeBatch:
        results: dict[int, ChangeBatch] = {
            id(given.leaf): rows for given, rows in zip(self._stage.inputs, ready, strict=True)
        }
        for node, operator, name in zip(self._order, self._operators, self._names, strict=True):
            inputs = [results[id(child)] for child in node.inputs]
            output = operator.process(inputs, clock)
            results[id(node)] = output
            counts.setdefault(name, Counts()).note(inputs, output, operator.refused)
        return results[id(self._stage.root)]


def _relation_rows(
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
