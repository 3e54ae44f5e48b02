"""Pacing: operators that learn the time one by one and may be behind the shard's clock, and the time messages they receive.

A paced operator runs up to the latest time that it has learnt on any input, but not beyond the time up to which all inputs
are complete: an operator below that is behind holds it back, and rows beyond its own time wait in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sash.physical.facts import must_expire
from sash.physical.nodes import Operation
from sash.physical.strategies.base import Strategy, TimeSettings
from sash.physical.strategies.piggyback import PiggybackedTime
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import Spool
from sash.state.memory import Memory
from sash.time import BEGINNING


class Pacing:
    """Per operator: its time sources, the time that it has reached, and the rows that wait in front of it."""

    def __init__(self, memory: Memory, operations: Sequence[Operation], strategy: Strategy) -> None:
        self._operations = operations
        self._must_expire = [must_expire(node) for node in operations]
        self._reached = memory.array("reached", np.int64, max(1, len(operations)))
        self._begun = memory.array("begun", np.int64, 1)
        if not self._begun[0]:
            self._begun[0] = 1
            self._reached[:] = BEGINNING
        self._sources = [
            [
                strategy.time_source(memory.scope(f"{number}.ear{index}"), TimeSettings())
                for index in range(len(node.inputs))
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
        self._progress: dict[int, int] = {}
        self._most: Sequence[int] | None = None

    @property
    def reached(self) -> list[int]:
        """The time that every operator has reached."""
        return [int(clock) for clock in self._reached[: len(self._operations)]]

    @property
    def waiting(self) -> int:
        """The number of rows that wait."""
        return sum(spool.rows for spools in self._waiting for spool in spools)

    def hold(self, reached: Sequence[int] | None) -> None:
        """Let no operator run past these times (None: no limit), while a shard is rebuilt."""
        self._most = reached

    def begin(self, leaves: Sequence[int], clock: int) -> None:
        """Start a slice of time; the inputs of the shard (by identity) are complete before the clock."""
        self._progress = dict.fromkeys(leaves, clock)

    def admit(self, number: int, inputs: Sequence[ChangeBatch], everything: bool) -> tuple[list[ChangeBatch], int]:
        """The rows that an operator may process now, and its clock; with `everything`, all that its inputs have delivered."""
        node = self._operations[number]
        progress = min(self._progress[id(child)] for child in node.inputs)
        learnt = BEGINNING
        for child, source, batch in zip(node.inputs, self._sources[number], inputs, strict=True):
            source.receive_rows(batch, child.expiry != "explicit", progress)
            source.tick(progress, progress - 1)
            learnt = max(learnt, source.time)
        clock = progress if everything else min(progress, learnt)
        if self._most is not None:
            clock = min(progress, self._most[number])
        clock = max(clock, int(self._reached[number]))
        self._reached[number] = clock
        self._progress[id(node)] = clock if self._must_expire[number] else progress
        admitted = []
        for spool, batch in zip(self._waiting[number], inputs, strict=True):
            rows = concat([spool.load(), batch]) if spool.rows else batch
            split = int(np.searchsorted(rows.ts, clock, side="left"))
            if split < len(rows) or spool.rows:
                spool.save(rows.slice(split, len(rows)))
            admitted.append(rows.slice(0, split))
        return admitted, clock

    def progress(self, node: int) -> int:
        """The time before which the output of a node (by identity) is complete."""
        return self._progress[node]


class TimeMessages:
    """The time messages of a shard, for strategies that send them: one per edge and slice of time.

    A batch ends with its clock, so no time waits for a row of the next one. An edge whose rows carry the time
    (piggybacking) sends a message only for a slice without rows.
    """

    def __init__(self, memory: Memory, operations: Sequence[Operation], strategy: Strategy) -> None:
        self._sources = [
            [
                None
                if child.expiry in ("explicit", "mono")
                else strategy.time_source(
                    memory.scope(f"{number}.{index}"), TimeSettings(patience=patience(child.horizon))
                )
                for index, child in enumerate(node.inputs)
            ]
            for number, node in enumerate(operations)
        ]

    @property
    def switches(self) -> int:
        """How often edges have switched between messages and piggybacking."""
        return sum(s.switches for sources in self._sources for s in sources if isinstance(s, PiggybackedTime))

    def receive(self, number: int, inputs: Sequence[ChangeBatch], clock: int) -> int:
        """The number of messages that an operator receives in a slice of time that ends before the clock."""
        messages = 0
        for source, batch in zip(self._sources[number], inputs, strict=True):
            if source is None:
                continue
            source.receive_rows(batch, stamped=True, now=clock - 1)
            carried = isinstance(source, PiggybackedTime) and source.by_rows and len(batch) > 0
            if not carried and source.time < clock:
                source.receive_message(clock - 1, clock - 1)
                messages += 1
            source.advance(clock)
        return messages


def patience(horizon: int) -> int:
    """How long a time may wait for a row to carry it: a thousandth of the rows' lifetime, so that answers are hardly late."""
    return max(1, horizon // 1000) if horizon else 100_000
