"""Pacing: the operators of a shard where each hears the time for itself, and may be behind the shard's clock.

An operator runs up to the time it has heard of on any of its inputs, but never beyond what all of them have said: an
operator below that is behind holds it back, and rows beyond its own time wait in front of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sash.physical.nodes import Operation
from sash.physical.strategies.base import Settings, Strategy, must_expire
from sash.physical.strategies.piggyback import Carried
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Memory
from sash.state.spool import Spool
from sash.time import BEGINNING


class Pacing:
    """What each operator has heard, how far it is, and the rows that wait in front of it."""

    def __init__(self, memory: Memory, operations: Sequence[Operation], strategy: Strategy) -> None:
        self._operations = operations
        self._reached = memory.array("reached", np.int64, max(1, len(operations)))
        self._begun = memory.array("begun", np.int64, 1)
        if not self._begun[0]:
            self._begun[0] = 1
            self._reached[:] = BEGINNING
        self._ears = [
            [strategy.ear(memory.scope(f"{number}.ear{index}"), Settings()) for index in range(len(node.inputs))]
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
        """How far every operator is."""
        return [int(clock) for clock in self._reached[: len(self._operations)]]

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return sum(spool.rows for spools in self._waiting for spool in spools)

    def hold(self, reached: Sequence[int] | None) -> None:
        """Let no operator go further than this (None: as far as it hears), while a shard is built again."""
        self._most = reached

    def begin(self, leaves: Sequence[int], clock: int) -> None:
        """A slice of time begins; the inputs of the shard (by identity) are complete before the clock."""
        self._progress = dict.fromkeys(leaves, clock)

    def admit(self, number: int, inputs: Sequence[ChangeBatch], everything: bool) -> tuple[list[ChangeBatch], int]:
        """What an operator may work on now, and up to which clock; `everything` lets it go as far as its inputs are."""
        node = self._operations[number]
        progress = min(self._progress[id(child)] for child in node.inputs)
        heard = BEGINNING
        for child, ear, batch in zip(node.inputs, self._ears[number], inputs, strict=True):
            ear.rows(batch, child.expiry != "explicit", progress)
            ear.tick(progress, progress - 1)
            heard = max(heard, ear.time)
        clock = progress if everything else min(progress, heard)
        if self._most is not None:
            clock = min(progress, self._most[number])
        clock = max(clock, int(self._reached[number]))
        self._reached[number] = clock
        self._progress[id(node)] = clock if must_expire(node) else progress
        admitted = []
        for spool, batch in zip(self._waiting[number], inputs, strict=True):
            rows = concat([spool.load(), batch]) if spool.rows else batch
            split = int(np.searchsorted(rows.ts, clock, side="left"))
            if split < len(rows) or spool.rows:
                spool.save(rows.slice(split, len(rows)))
            admitted.append(rows.slice(0, split))
        return admitted, clock

    def progress(self, node: int) -> int:
        """Up to where the output of a node (by identity) is complete."""
        return self._progress[node]


class Listening:
    """The time messages that reach the operators of a shard, where the strategy has any: one per edge and slice of time.

    A batch ends with its clock, so here no time waits for a row of the next one; an edge that passes times on with its
    rows (piggybacking) sends a message only for a slice in which it has none.
    """

    def __init__(self, memory: Memory, operations: Sequence[Operation], strategy: Strategy) -> None:
        self._ears = [
            [
                None
                if child.expiry in ("explicit", "mono")
                else strategy.ear(memory.scope(f"{number}.{index}"), Settings(patience=patience(child.horizon)))
                for index, child in enumerate(node.inputs)
            ]
            for number, node in enumerate(operations)
        ]

    @property
    def switches(self) -> int:
        """How often edges have changed their mode."""
        return sum(ear.switches for ears in self._ears for ear in ears if isinstance(ear, Carried))

    def hear(self, number: int, inputs: Sequence[ChangeBatch], clock: int) -> int:
        """How many messages an operator gets in a slice of time that ends before the clock."""
        messages = 0
        for ear, batch in zip(self._ears[number], inputs, strict=True):
            if ear is None:
                continue
            ear.rows(batch, stamped=True, now=clock - 1)
            carried = isinstance(ear, Carried) and ear.by_rows and len(batch) > 0
            if not carried and ear.time < clock:
                ear.message(clock - 1, clock - 1)
                messages += 1
            ear.hear(clock)
        return messages


def patience(horizon: int) -> int:
    """How long a time may wait for a row to carry it: a thousandth of the rows' lives, so answers are hardly late."""
    return max(1, horizon // 1000) if horizon else 100_000
