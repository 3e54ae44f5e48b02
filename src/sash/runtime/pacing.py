"""Pacing: every operator has learnt a time, and releases changes before it, which may be behind the shard's clock.

What an operator has learnt is the latest time of its input edges (`physical/strategies/`): by rows, and, as the strategy has
it, by messages or probes. It runs up to that time, but not beyond the one up to which all inputs are complete: an operator
below that is behind holds it back, and rows beyond its own time wait in front of it. Nothing else moves it on. An operator
whose inputs all end by retractions has nothing to learn: it runs as far as its inputs do.

Time messages begin at the scans: one per edge and slice of time in which rows ended, and one per batch if its clock moved
further than rows show. An operator that has received one forwards it after its own work. Between stages an edge carries
`Times`; what has been learnt is stored with the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sash.physical.facts import expires_silently, must_expire
from sash.physical.nodes import Leaf, Operation, PhysicalPlan, RelationLeg, Stage, StreamLeg, walk
from sash.physical.strategies.base import Delivery, TimeSettings, TimeSource
from sash.physical.strategies.registry import strategy_of
from sash.runtime.counts import Counts
from sash.runtime.probing import Probing
from sash.runtime.times import Ends, Times
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import Spool
from sash.state.memory import Ints, Memory
from sash.time import BEGINNING, FOREVER

Reached = dict[str, Any]
"""What a checkpoint has of the operators' times, as JSON: the time that each has reached, and the words of its edges."""

_NOW, _LEARNT, _TOLD = range(3)
_NOTHING: Ints = np.empty(0, np.int64)


class Pacing:
    """Per operator of a shard: its sources of time, the time that it has reached, and the rows that wait in front of it."""

    def __init__(self, memory: Memory, plan: PhysicalPlan, stage: Stage, operations: Sequence[Operation]) -> None:
        self._strategy = strategy = strategy_of(stage.strategy)
        self._stage = stage
        self._levels = 0 if stage.probe is None else _levels(plan)
        self._operations = operations
        self._leaves = [given.leaf for given in stage.inputs]
        legs = [None if leaf.leg is None else plan.legs[leaf.leg] for leaf in self._leaves]
        self._static = [isinstance(leg, RelationLeg) for leg in legs]
        self._must_expire = [must_expire(node) for node in operations]
        self._silent = [[expires_silently(child) for child in node.inputs] for node in operations]
        self._learns = [strategy.by_rows_alone or any(silent) for silent in self._silent]
        self._reached = memory.array("reached", np.int64, max(1, len(operations)))
        begun = memory.array("begun", np.int64, 1)
        if not begun[0]:
            begun[0] = 1
            self._reached[:] = BEGINNING
        self._clock = memory.array("clock", np.int64, 2)
        self._fed = memory.array("fed", np.int64, 3 * len(self._leaves)).reshape(-1, 3)
        if not self._clock[0]:
            self._clock[:] = 1, BEGINNING
            self._fed[:] = BEGINNING
        self._sources = [
            [
                self._source(memory.scope(f"{number}.ear{index}"), child.horizon, silent)
                for index, (child, silent) in enumerate(zip(node.inputs, self._silent[number], strict=True))
            ]
            for number, node in enumerate(operations)
        ]
        self._waiting = [
            [
                Spool(memory.scope(f"{number}.wait{index}"), [field.dtype for field in child.schema])
                for index, child in enumerate(node.inputs)
            ]
            for number, node in enumerate(operations)
        ]
        self._ends = {
            index: Ends(memory.scope(f"ends{index}"))
            for index, (leaf, leg) in enumerate(zip(self._leaves, legs, strict=True))
            if strategy.messages and isinstance(leg, StreamLeg) and expires_silently(leaf)
        }
        self._arrived: list[Times | None] = [None] * len(self._leaves)
        self._forwarded = [False] * len(self._leaves)
        self._progress: dict[int, int] = {}
        self._learnt: dict[int, int] = {}
        self._due: dict[int, tuple[Ints, bool]] = {}
        self._probing = Probing([], 0)
        self._until = self._now = int(self._clock[1])
        self._last = self._ended = self._rebuilding = False
        self._most: Sequence[int] | None = None

    def _source(self, memory: Memory, horizon: int, silent: bool) -> TimeSource:
        kind = self._strategy.time_source if silent or self._strategy.by_rows_alone else TimeSource
        waits = patience(horizon) if self._stage.patience is None else self._stage.patience
        return kind(memory, TimeSettings(self._stage.probe, waits))

    @property
    def waiting(self) -> int:
        """The number of rows that wait."""
        return sum(spool.rows for spools in self._waiting for spool in spools)

    @property
    def switches(self) -> int:
        """How often edges have switched between messages and piggybacking."""
        return sum(source.switches for sources in self._sources for source in sources)

    @property
    def floor(self) -> int:
        """The time that the slowest operator has reached."""
        return int(self._reached[: len(self._operations)].min()) if self._operations else int(FOREVER)

    @property
    def reached(self) -> Reached:
        """All that a checkpoint must have."""
        return {
            "operators": [int(clock) for clock in self._reached[: len(self._operations)]],
            "now": int(self._clock[1]),
            "fed": self._fed.tolist(),
            "edges": [[source.words for source in sources] for sources in self._sources],
        }

    def hold(self, reached: Reached | Sequence[int] | None) -> None:
        """Begin to rebuild the shard: let no operator run past the time that it had reached (None: the shard's clock).

        Earlier versions stored the times of operators alone.
        """
        self._rebuilding = True
        self._most = reached["operators"] if isinstance(reached, Mapping) else reached

    def go_on(self, reached: Reached | Sequence[int] | None) -> None:
        """Continue, after the shard has been rebuilt, with what its operators had learnt."""
        self._rebuilding, self._most = False, None
        if isinstance(reached, Mapping):
            self._clock[1] = reached["now"]
            self._fed[:] = reached["fed"]
            for sources, edges in zip(self._sources, reached["edges"], strict=True):
                for source, words in zip(sources, edges, strict=True):
                    source.recall(words)
            return
        for clock, sources in zip(self._reached.tolist(), self._sources, strict=False):
            for source in sources:
                source.advance(clock)

    def arrive(self, times: Sequence[Times | None]) -> None:
        """Take in what the edges from other stages carry of time (None: no report), and the clocks of scans."""
        self._arrived = list(times)
        awaited = [
            given for given, leaf, static in zip(times, self._leaves, self._static, strict=True)
            if not (leaf.follows or static)
        ]  # fmt: skip
        self._ended = bool(awaited) and all(given is not None and given.ended for given in awaited)
        self._forwarded = [False] * len(times)
        for index, given in enumerate(times):
            if given is not None:
                self._forwarded[index] = given.told > self._fed[index, _TOLD]
                self._fed[index] = np.maximum(self._fed[index], (given.now, given.learnt, given.told))

    def open(self, ready: Sequence[ChangeBatch], clock: int) -> None:
        """Start a batch, whose rows are complete before the clock."""
        awaited = [
            int(now) for now, leaf, static in zip(self._fed[:, _NOW], self._leaves, self._static, strict=True)
            if not (leaf.follows or static)
        ]  # fmt: skip
        start = int(self._clock[1])
        self._until = max(clock, start if self._stage.tau is not None or not awaited else min(awaited), start)
        first = [int(rows.ts[0]) for rows in ready if len(rows)]
        last = [int(rows.ts[-1]) + 1 for rows in ready if len(rows)]
        start = min([*first, self._until]) if start <= BEGINNING else start
        end = self._until if self._until < FOREVER else max([start, *last])
        self._probing = Probing.between(start, end, self._stage.probe, self._levels)
        if not self._rebuilding:
            self._clock[1] = self._until

    def begin(self, ready: Sequence[ChangeBatch], clock: int, last: bool) -> None:
        """Start a slice of time with the rows of the inputs, which are complete before the clock."""
        self._last = last
        self._now = self._until if last else clock
        self._probing.pass_to(self._now)
        instants = [self._probing.instants[position] for position in self._probing.passed]
        for index, (leaf, rows) in enumerate(zip(self._leaves, ready, strict=True)):
            self._progress[id(leaf)] = clock
            if leaf.stage is None or self._static[index]:
                self._learnt[id(leaf)] = int(FOREVER) if self._static[index] else clock
                self._probing.answer(id(leaf), instants)
            else:
                self._learnt[id(leaf)] = learnt = int(self._fed[index, _LEARNT])
                arrived = self._arrived[index]
                before = {} if arrived is None else dict(arrived.probed)
                self._probing.answer(id(leaf), [before.get(instant, min(instant, learnt)) for instant in instants])
            self._due[id(leaf)] = self._due_on(index, leaf, rows, clock)

    def _due_on(self, index: int, leaf: Leaf, rows: ChangeBatch, clock: int) -> tuple[Ints, bool]:
        """The times that are due on the edge of an input, and whether a message must go even if rows show them."""
        if index in self._ends:
            ends = self._ends[index].pass_to(rows.exp, clock)
            if self._last and clock > BEGINNING and not (len(ends) and ends[-1] == clock - 1):
                return np.append(ends, clock - 1), len(ends) > 0
            return ends, len(ends) > 0
        if self._last and self._forwarded[index] and expires_silently(leaf):
            return np.array([min(int(self._fed[index, _TOLD]), clock) - 1]), True
        return _NOTHING, False

    def admit(
        self, number: int, inputs: Sequence[ChangeBatch], counted: Counts, everything: bool
    ) -> tuple[list[ChangeBatch], int]:
        """The rows that an operator may process now, and its clock; with `everything`, all that its inputs have delivered."""
        node = self._operations[number]
        progress, told = min(self._progress[id(child)] for child in node.inputs), False
        if self._rebuilding:
            clock = progress if self._most is None else min(progress, self._most[number])
        else:
            learnt, told = self._learn(number, inputs, counted, progress)
            clock = progress if everything else min(progress, learnt)
        clock = max(clock, int(self._reached[number]))
        self._reached[number] = clock
        self._progress[id(node)] = clock if self._must_expire[number] and self._learns[number] else progress
        forwards = told and expires_silently(node)
        self._due[id(node)] = (np.array([clock - 1]), True) if forwards else (_NOTHING, False)
        admitted = []
        for spool, batch in zip(self._waiting[number], inputs, strict=True):
            rows = concat([spool.load(), batch]) if spool.rows else batch
            split = int(np.searchsorted(rows.ts, clock, side="left"))
            if split < len(rows) or spool.rows:
                spool.save(rows.slice(split, len(rows)))
            admitted.append(rows.slice(0, split))
        return admitted, clock

    def _learn(self, number: int, inputs: Sequence[ChangeBatch], counted: Counts, progress: int) -> tuple[int, bool]:
        """What an operator has learnt by the end of the slice, and whether by a time that was due on an edge."""
        node, sources = self._operations[number], self._sources[number]
        children = [id(child) for child in node.inputs]
        if not self._learns[number]:
            self._probing.follow(id(node), children)
            self._learnt[id(node)] = min(self._learnt[child] for child in children)
            return progress, False
        before, switches = max(source.time for source in sources), sum(source.switches for source in sources)
        told = False
        for child, source, silent, batch in zip(node.inputs, sources, self._silent[number], inputs, strict=True):
            told |= source.receive_rows(batch, silent, self._now - 1)
            if self._strategy.messages and silent:
                told |= self._receive(source, *self._due[id(child)], counted)
        if self._strategy.probing:
            self._probe(number, inputs, counted, before)
        counted.switches += sum(source.switches for source in sources) - switches
        self._learnt[id(node)] = learnt = max(source.time for source in sources)
        return learnt, told

    def _receive(self, source: TimeSource, due: Ints, must: bool, counted: Counts) -> bool:
        """Deliver the times that are due on an edge; returns whether the operator has received any."""
        told, now = False, self._now - 1
        if len(due) and (must or due[-1] >= source.time):
            late = due[np.searchsorted(due, source.time) :]
            delivery = source.receive_message(int(due[-1]), now, int(late[0]) if len(late) else None)
            counted.messages += delivery is Delivery.MESSAGE
            told = delivery is not Delivery.WAITING or (must and len(late) < len(due))
        sent = source.tick(int(now), now) or (self._last and self._ended and source.flush())
        counted.messages += sent
        return told or sent

    def _probe(self, number: int, inputs: Sequence[ChangeBatch], counted: Counts, learnt: int) -> None:
        """Probe the inputs at the instants of the slice, and at the end of a batch without a period, or of the input."""
        node, sources = self._operations[number], self._sources[number]
        children = [id(child) for child in node.inputs]
        learnt = self._probing.learn(id(node), children, inputs, learnt)
        counted.time_probes += len(children) * self._probing.count if self._last else 0
        if self._last and (self._stage.probe is None or self._ended):
            learnt = max(learnt, min(self._learnt[child] for child in children))
            counted.time_probes += len(children)
        for source in sources:
            source.probe(learnt)

    def progress(self, node: int) -> int:
        """The time before which the output of a node (by identity) is complete."""
        return self._progress[node]

    @property
    def times(self) -> Times:
        """What the output of the stage carries of time."""
        root = id(self._stage.root)
        due, _ = self._due.get(root, (_NOTHING, False))
        told = int(due[-1]) + 1 if len(due) else int(BEGINNING)
        probed = zip(self._probing.instants, self._probing.past.get(root, ()), strict=False)
        return Times(self._now, self._learnt.get(root, int(BEGINNING)), told, tuple(probed), self._ended)


def patience(horizon: int) -> int:
    """How long a time may wait for a row to carry it: a thousandth of the rows' lifetime, so that answers are hardly late."""
    return max(1, horizon // 1000) if horizon else 100_000


def _levels(plan: PhysicalPlan) -> int:
    """The number of operators on the longest path from a scan to an answer."""
    roots: list[int] = []
    for stage in plan.stages:
        depths: dict[int, int] = {}
        for node in walk(stage.root):
            if isinstance(node, Leaf):
                depths[id(node)] = 0 if node.stage is None else roots[node.stage]
            else:
                depths[id(node)] = 1 + max(depths[id(child)] for child in node.inputs)
        roots.append(depths[id(stage.root)])
    return max(roots)
