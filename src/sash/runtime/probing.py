"""Probes of time at a period: what every operator learns from its inputs, level by level (paper 1, 3.1).

All operators probe at the multiples of the period, when the system clock passes them. A probe reads what an input had learnt
before that instant, so a time climbs one level per probe. While nothing else happens only the last probes matter, as many as
the plan has levels: they are computed, and the others counted. Without a period, operators probe once per batch, bottom up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sash.state.changes import ChangeBatch
from sash.time import BEGINNING, FOREVER


@dataclass
class Probing:
    """The probes of one batch: the last `instants` of them, and how many there are (`count`).

    `past` has for every node of the plan (by identity) what it had learnt just before each of the instants.
    """

    instants: list[int]
    count: int
    past: dict[int, list[int]] = field(default_factory=dict)
    _passed: tuple[int, int] = (0, 0)

    @staticmethod
    def between(start: int, now: int, period: int | None, levels: int) -> Probing:
        """The probes while the system clock moves from `start` to `now`.

        >>> Probing.between(10, 95, 20, 3)
        Probing(instants=[40, 60, 80], count=4, past={}, _passed=(0, 0))
        """
        if period is None or start <= BEGINNING or now >= FOREVER or now <= start:
            return Probing([], 0)
        last = now // period
        count = last - start // period
        return Probing([number * period for number in range(last - min(count, levels) + 1, last + 1)], count)

    def pass_to(self, clock: int) -> None:
        """Start the slice of time that ends before the clock."""
        _, begun = self._passed
        self._passed = begun, int(np.searchsorted(np.array(self.instants, np.int64), clock, side="right"))

    @property
    def passed(self) -> range:
        """The positions of the instants within the slice."""
        return range(*self._passed)

    def answer(self, node: int, times: Sequence[int]) -> None:
        """What a node had learnt just before each instant of the slice."""
        self.past.setdefault(node, []).extend(times)

    def learn(self, node: int, inputs: Sequence[int], rows: Sequence[ChangeBatch], learnt: int) -> int:
        """What an operator has learnt after the probes of the slice, given what it had learnt before, and its rows."""
        before: list[int] = []
        for position in self.passed:
            instant = self.instants[position]
            for batch in rows:
                arrived = int(np.searchsorted(batch.ts, instant, side="left"))
                learnt = max(learnt, int(batch.ts[arrived - 1]) + 1) if arrived else learnt
            before.append(learnt)
            learnt = max(learnt, min(self.past[child][position] for child in inputs))
        self.answer(node, before)
        return learnt

    def follow(self, node: int, inputs: Sequence[int]) -> None:
        """An operator that has nothing to learn of time is as far as its inputs are."""
        self.answer(node, [min(self.past[child][position] for child in inputs) for position in self.passed])
