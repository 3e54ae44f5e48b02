"""One shard of one stage: rows arrive, wait until the clock allows, and run through the operators, which output changes.

The clock of an input (its watermark) means that every row before it has arrived. The shard's clock is the smallest of them,
and only instants before it are released. Rows ahead of it wait in a spool. A row behind its own stream's clock is late: it
is counted and dropped. A late update of a relation is not dropped, since the relation would stay wrong: it is counted and
takes effect at the shard's clock. A relation that follows does not hold the clock back; where a shard has only such inputs,
its clock is just past the latest update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from types import MappingProxyType
from typing import Protocol

import numpy as np

from sash.operators.aggregate import Aggregate
from sash.operators.base import Learnt, Operator, merge
from sash.operators.netting import net
from sash.operators.window import assign
from sash.physical.nodes import Aggregate as AggregateNode
from sash.physical.nodes import (
    Filter,
    Join,
    Operation,
    PhysicalPlan,
    Project,
    RelationLeg,
    Stage,
    StreamLeg,
    UpdateLeg,
    operations,
)
from sash.physical.strategies.registry import strategy_of
from sash.plan.nodes import Range, Window
from sash.runtime.build import Relations, SharedRows, build
from sash.runtime.counts import Counts
from sash.runtime.pacing import Pacing, Reached
from sash.runtime.recomputation import Recomputation
from sash.runtime.times import Times
from sash.state.buffer import Buffer
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import Spool
from sash.state.hashing import hash_rows, shards_of
from sash.state.memory import HeapMemory, Memory
from sash.time import BEGINNING, FOREVER

SLICE = 1 << 15
"""The approximate number of rows of its busiest input that a shard processes at a time."""

NET_SLICE = 1 << 17
"""The same where state is restored: groups change once per slice, so that longer ones mean less work."""

NO_HOLDERS: Mapping[int, RowHolder | None] = MappingProxyType({})

_STATELESS = (Filter, Project)
"""Operators whose output for a row depends on that row alone."""


def tells_answer(stage: Stage) -> bool:
    """Whether the answer of a stage can be read from its state, without a replay."""
    node, strategy = stage.root, strategy_of(stage.strategy)
    while isinstance(node, _STATELESS):
        (node,) = node.inputs
    return isinstance(node, AggregateNode) and not strategy.paced and not strategy.recomputes


class RowHolder(Protocol):
    """Keeps the rows of a common input, those that arrived with the present batch among them."""

    def between(self, start: int, end: int) -> ChangeBatch:
        """The rows with start <= ts < end, in order."""


@dataclass(frozen=True)
class Arrival:
    """The rows of one input in a batch (those of a stream have their own time as `ts`), and its clock.

    `times` is what the edge from another stage carries of time; None: the sender is never behind its clock. `holder` has the
    rows of a common input.
    """

    rows: ChangeBatch
    clock: int
    times: Times | None = None
    holder: RowHolder | None = None


@dataclass(frozen=True)
class Intake:
    """A batch as a shard took it in: the rows accepted per input, the number of late rows, the rows that are ready, the
    clock up to which it can release, and the operators' counts once it has."""

    accepted: tuple[ChangeBatch, ...]
    late: int
    ready: tuple[ChangeBatch, ...]
    clock: int
    counts: dict[str, Counts] = field(default_factory=dict)


@dataclass(frozen=True)
class ShardOutput:
    """The changes that a shard output for a batch, the clock before which there will be no others, and its times."""

    changes: ChangeBatch
    intake: Intake
    clock: int
    times: Times | None


class Shard:
    """The operators of a stage attached to one memory. A new shard on the same memory continues where the last one stopped."""

    def __init__(
        self, plan: PhysicalPlan, stage: Stage, memory: Memory, relations: Relations, shard: int = 0, shards: int = 1
    ) -> None:
        self._stage = stage
        self._number = shard
        self._tau = stage.tau
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
        self._order = operations(stage.root)
        self._names = [f"{index}.{node.name}" for index, node in enumerate(self._order)]
        strategy = strategy_of(stage.strategy)
        self._recomputation: Recomputation | None = None
        if strategy.recomputes:
            names = {id(node): name for node, name in zip(self._order, self._names, strict=True)}
            self._recomputation = Recomputation(memory.scope("recomputation"), stage, names, relations)
        made: dict[int, Operator] = {}
        for node, name in zip(self._order, self._names, strict=True):
            anew = self._recomputation is not None and self._recomputation.holds(node)
            kept = HeapMemory() if anew else memory.scope(name)
            made[id(node)] = build(node, kept, relations, _shared_rows(node, made))
        self._operators = list(made.values())
        self._collapsible = [] if strategy.paced or strategy.recomputes else self._outermost_aggregates()
        self._synchronised = strategy.synchronised
        self._pacing = Pacing(memory.scope("pacing"), plan, stage, self._order) if strategy.paced else None

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
        """Every change before this has been output: the clock, unless the last operator is behind it."""
        return self.clock if self._pacing is None else self._pacing.progress(id(self._stage.root))

    @property
    def times(self) -> Times | None:
        """What the output carries of time, beside `released`; None if no operator is ever behind the clock."""
        return None if self._pacing is None else self._pacing.times

    @property
    def reached(self) -> Reached | None:
        """The time that every operator has reached, and what it has learnt, where they may be behind the clock."""
        return None if self._pacing is None else self._pacing.reached

    @property
    def learnt(self) -> dict[str, Learnt]:
        """What operators have learnt at run time, by name, which a rebuilt shard goes on with."""
        found = zip(self._names, (operator.learnt for operator in self._operators), strict=True)
        return {name: learnt for name, learnt in found if learnt is not None}

    @property
    def floor(self) -> int:
        """No operator still needs a row that expired before this."""
        return self.clock if self._pacing is None else min(self.clock, self._pacing.floor)

    @property
    def switches(self) -> int:
        """How often edges have switched between messages and piggybacking."""
        return 0 if self._pacing is None else self._pacing.switches

    @property
    def state_rows(self) -> int:
        """The number of rows that the operators keep, and of those that wait."""
        kept = 0 if self._recomputation is None else self._recomputation.rows
        return sum(operator.state_rows for operator in self._operators) + self.waiting + kept

    @property
    def operators(self) -> Sequence[Operator]:
        """The operators, in the order in which they run."""
        return self._operators

    @property
    def operator_rows(self) -> dict[str, int]:
        """The number of rows that each operator keeps."""
        return {name: operator.state_rows for name, operator in zip(self._names, self._operators, strict=True)}

    def operator_bytes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The size of each operator's arrays in bytes, given the sizes of all arrays of the memory by name."""
        return {
            name: sum(size for array, size in sizes.items() if array.startswith(f"{name}.")) for name in self._names
        }

    @property
    def waiting(self) -> int:
        """The number of rows that wait for the clock."""
        return sum(spool.rows for spool in self._spools) + (0 if self._pacing is None else self._pacing.waiting)

    def run(self, arrivals: Sequence[Arrival | None]) -> ShardOutput:
        """Take in one batch per input (None: no report from it) and release what the clock allows."""
        intake = self.take(arrivals)
        changes = concat(list(self.release(intake)))
        return ShardOutput(changes, intake, self.released, self.times)

    def flush(self) -> ChangeBatch:
        """The changes that operators have not output so far because they have not learnt the time."""
        if self._pacing is None:
            return ChangeBatch.empty([column.dtype for column in self._stage.root.schema])
        return self._evaluate(self._nothing, self.clock, {}, everything=True)

    def take(self, arrivals: Sequence[Arrival | None]) -> Intake:
        """Take in one batch per input; late rows are dropped, late updates of relations are moved to the clock."""
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
        if self._pacing is not None:
            self._pacing.arrive([None if a is None else a.times or Times.at(a.clock) for a in arrivals])
        holders = {index: arrival.holder for index, arrival in enumerate(arrivals) if arrival is not None}
        return self._position(accepted, [None if a is None else a.clock for a in arrivals], late, holders)

    def restore(
        self,
        live: Sequence[ChangeBatch],
        clocks: Sequence[int],
        reached: Reached | Sequence[int] | None = None,
        learnt: Mapping[str, Learnt] | None = None,
    ) -> None:
        """Rebuild the state of an empty shard from the live rows it had accepted and the clocks it had reached.

        For a shard that was restored from an older state, from the rows it has accepted since. None of them counts as late,
        and those ahead of the clock wait again. `reached` is that of the shard, where operators may be behind the clock, and
        `learnt` what operators had learnt beside the time.
        """
        for _ in self.replay(live, clocks, reached, learnt, net=True):
            pass

    def replay(
        self,
        live: Sequence[ChangeBatch],
        clocks: Sequence[int],
        reached: Reached | Sequence[int] | None = None,
        learnt: Mapping[str, Learnt] | None = None,
        net: bool = False,
    ) -> Iterator[ChangeBatch]:
        """Restore an empty shard, and yield the changes from the empty answer to the current one.

        With `net` rows that are not in the current answer may be left out, and the others may have later times.
        """
        self._recall(learnt or {})
        if self._pacing is not None:
            self._pacing.hold(reached)
        if self._recomputation is not None:
            self._recomputation.restoring = True
        collapsed = self._collapsible if net else ()
        for operator in collapsed:
            operator.net = True
        yield from self.release(self._position(live, clocks, 0), NET_SLICE if collapsed else SLICE)
        for operator in collapsed:
            operator.net = False
        if self._pacing is not None:
            self._pacing.go_on(reached)
        if self._recomputation is not None:
            self._recomputation.restoring = False
        self._recall(learnt or {})

    def _recall(self, learnt: Mapping[str, Learnt]) -> None:
        """Let operators go on with what they had learnt: before live rows are replayed and, as these count again, after."""
        for name, operator in zip(self._names, self._operators, strict=True):
            if name in learnt:
                operator.recall(learnt[name])

    def answer(self) -> ChangeBatch | None:
        """The current answer, read from the state; None if the operators cannot tell it without a replay."""
        above: list[Operator] = []
        node, operators = self._stage.root, dict(zip(map(id, self._order), self._operators, strict=True))
        while isinstance(node, _STATELESS):
            above.append(operators[id(node)])
            (node,) = node.inputs
        found = operators.get(id(node))
        exact = self._pacing is None and self._recomputation is None
        if not exact or not isinstance(found, Aggregate) or self.clock <= BEGINNING:
            return None
        rows = found.answer(self.clock)
        for operator in reversed(above):
            rows = operator.process([rows], self.clock)
        return rows

    def _outermost_aggregates(self) -> list[Operator]:
        """The aggregates whose changes no other operator keeps: only such that work row by row are above them."""
        outermost = {id(self._stage.root)}
        for node in reversed(self._order):
            if id(node) in outermost and isinstance(node, _STATELESS):
                outermost.update(id(child) for child in node.inputs)
        return [
            operator
            for node, operator in zip(self._order, self._operators, strict=True)
            if id(node) in outermost and isinstance(operator, Aggregate)
        ]

    def _position(
        self,
        accepted: Sequence[ChangeBatch],
        clocks: Sequence[int | None],
        late: int,
        holders: Mapping[int, RowHolder | None] = NO_HOLDERS,
    ) -> Intake:
        """Set the clocks and split the rows into those that are ready and those that wait.

        Without a holder, as where live rows are replayed, no row ends but those given.
        """
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
            released = self._spools[index].until(self._in_time(placed), clock)
            if self._stage.inputs[index].common:
                released = self._with_ends(released, index, clock, holders.get(index))
            # Changes that were moved to one instant may cancel out.
            put_off = self._stage.inputs[index].leaf.follows and not self._updates[index]
            ready.append(net(released) if put_off else released)
        self._begun[0] = 1
        self._clocks[-1] = max(clock, self.clock)
        return Intake(tuple(accepted), late, tuple(ready), self.clock)

    def _with_ends(self, rows: ChangeBatch, index: int, clock: int, holder: RowHolder | None) -> ChangeBatch:
        """Rows that are ready, with the retractions of those that end before the clock, which come first at each instant."""
        window = self._windows[index]
        assert isinstance(window, Range)
        if holder is None:
            ended = rows.slice(0, int(np.searchsorted(rows.ts, clock - window.length, side="left")))
        else:
            begun = max(self.clock, int(BEGINNING) + window.length)
            ended = holder.between(begun - window.length, max(clock, begun) - window.length)
        added = ChangeBatch.explicit(rows.ts, rows.sign, rows.columns)
        if not len(ended):
            return added
        removed = ChangeBatch.explicit(ended.ts + window.length, -ended.sign, ended.columns)
        return concat([removed, added]).take(merge(removed.ts, added.ts)) if len(added) else removed

    def _shard_clock(self) -> int:
        """The clock before which all awaited inputs are complete; if clock-triggered, that of the fastest.

        Without an awaited input, it is just past the latest update.
        """
        clocks = self._clocks[:-1]
        if self._follows_only:
            return int(clocks[self._changing].max()) + (1 if any(self._updates) else 0)
        awaited = clocks[self._awaited]
        if self._synchronised:
            return int(awaited.min())
        reported = awaited[awaited < FOREVER]
        return int(reported.max()) if len(reported) else int(FOREVER)

    def _in_time(self, rows: ChangeBatch) -> ChangeBatch:
        """The rows unchanged; if clock-triggered, a row that arrives after its time gets the current one."""
        if self._synchronised or not len(rows) or rows.ts.min() >= self.clock:
            return rows
        delayed = ChangeBatch(np.maximum(rows.ts, self.clock), rows.exp, rows.sign, rows.columns)
        return delayed.take(np.flatnonzero(delayed.exp > delayed.ts))

    def release(self, intake: Intake, size: int = SLICE) -> Iterator[ChangeBatch]:
        """Run the operators over the rows that are ready, in slices of time, and yield the changes of each.

        Slices keep the operators' arrays in the processor's cache and let readers work on the first changes: the first of
        several slices is short, so that they can start early.
        """
        longest = max((rows.ts for rows in intake.ready), key=len)
        starts = list(range(size, len(longest) - size // 2, size))
        clocks = [int(longest[start]) for start in ([size // 8, *starts] if starts else [])]
        begun = [0] * len(intake.ready)
        if self._pacing is not None:
            self._pacing.open(intake.ready, intake.clock)
        for clock in dict.fromkeys(clocks):
            ends = [int(np.searchsorted(rows.ts, clock, side="left")) for rows in intake.ready]
            slices = [rows.slice(a, b) for rows, a, b in zip(intake.ready, begun, ends, strict=True)]
            begun = ends
            yield self._evaluate(slices, clock, intake.counts, last=False)
        rest = [rows.slice(a, len(rows)) for rows, a in zip(intake.ready, begun, strict=True)]
        yield self._evaluate(rest, intake.clock, intake.counts)

    def _reached(self, clock: int) -> int:
        """The clock, or with tau that of the last re-execution: later rows wait for the next one."""
        if self._tau is None or clock in (BEGINNING, FOREVER):
            return clock
        return (clock - 1) // self._tau * self._tau + 1

    def _evaluate(
        self,
        ready: Sequence[ChangeBatch],
        clock: int,
        counts: dict[str, Counts],
        *,
        last: bool = True,
        everything: bool = False,
    ) -> ChangeBatch:
        leaves = [id(given.leaf) for given in self._stage.inputs]
        results: dict[int, ChangeBatch] = dict(zip(leaves, ready, strict=True))
        if self._pacing is not None:
            self._pacing.begin(ready, clock, last)
        for number, (node, operator, name) in enumerate(zip(self._order, self._operators, self._names, strict=True)):
            if self._recomputation is not None and self._recomputation.holds(node):
                results[id(node)] = self._recomputation.output(node, results, clock, counts)
                continue
            inputs, until = [results[id(child)] for child in node.inputs], clock
            counted = counts.setdefault(name, Counts())
            if self._pacing is not None:
                inputs, until = self._pacing.admit(number, inputs, counted, everything)
            before, examined, premature = Buffer.expired, operator.rows_examined, operator.premature
            started = perf_counter_ns()
            output = operator.process(inputs, until)
            counted.microseconds += (perf_counter_ns() - started) // 1000
            results[id(node)] = output
            counted.count_call(inputs, output, Buffer.expired - before)
            counted.rows_examined += operator.rows_examined - examined
            counted.premature += operator.premature - premature
            counted.refused += operator.refused
            if (choice := operator.current_choice) is not None:
                counted.current_choice[self._number] = choice
        for operator in self._operators:
            operator.settle()
        return results[id(self._stage.root)]


def _shared_rows(node: Operation, made: Mapping[int, Operator]) -> SharedRows:
    if not isinstance(node, Join):
        return None, None
    left, right = (
        made[id(child)].shared_rows() if shared else None
        for child, shared in zip(node.inputs, node.shared, strict=True)
    )
    return left, right


def released_by(tau: int | None, ts: int) -> int:
    """The instant at which a change is released: its own, or with tau the next multiple."""
    return ts if tau is None else -(-ts // tau) * tau


def relation_rows(
    relations: Relations, leg: RelationLeg, keys: tuple[int, ...], shard: int, shards: int
) -> ChangeBatch:
    """The rows of a relation that belong to one shard, valid from time 0."""
    table = relations[leg.node]
    rows = table.num_rows
    columns = tuple(table.column(index).combine_chunks() for index in range(table.num_columns))
    times = np.zeros(rows, np.int64)
    batch = ChangeBatch(times, np.full(rows, FOREVER), np.ones(rows, np.int8), columns)
    return partition(batch, keys, shards)[shard] if shards > 1 else batch


def partition(batch: ChangeBatch, keys: tuple[int, ...], shards: int) -> list[ChangeBatch]:
    """The batch split by the hash of its key columns; without key columns everything is in shard 0."""
    if shards == 1:
        return [batch]
    if not keys:
        return [batch, *([batch.slice(0, 0)] * (shards - 1))]
    low, high = hash_rows([batch.columns[key] for key in keys], len(batch))
    owner = shards_of(low, high, shards)
    return [batch.take(np.flatnonzero(owner == shard)) for shard in range(shards)]
