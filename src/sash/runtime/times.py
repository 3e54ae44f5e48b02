"""What an edge carries of time beside its rows, and the times at which the rows of a scan end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sash.state.memory import Ints, Memory
from sash.time import FOREVER


@dataclass(frozen=True)
class Times:
    """The time on an edge between two stages, beside the clock before which its rows are complete.

    `now` is the system clock of the sender, `learnt` the time that its last operator has learnt, and `told` the time that it
    has forwarded as a message. `probed` has, for the latest instants of probes, what it had learnt just before. `ended` is
    whether its input has ended.
    """

    now: int
    learnt: int
    told: int
    probed: tuple[tuple[int, int], ...] = ()
    ended: bool = False

    @staticmethod
    def at(clock: int, ended: bool = False) -> Times:
        """The time of a sender that is never behind its clock."""
        return Times(clock, clock, clock, (), ended)

    @staticmethod
    def slowest(parts: Sequence[Times]) -> Times:
        """The time on the edge from several shards: of each figure the smallest."""
        before = [dict(part.probed) for part in parts]
        common = [instant for instant in before[0] if all(instant in one for one in before)]
        return Times(
            min(part.now for part in parts),
            min(part.learnt for part in parts),
            min(part.told for part in parts),
            tuple((instant, min(one[instant] for one in before)) for instant in common),
            all(part.ended for part in parts),
        )

    def to_text(self) -> str:
        """The figures as text, for a message."""
        return json.dumps([self.now, self.learnt, self.told, self.probed, self.ended])

    @staticmethod
    def from_text(text: str) -> Times:
        """Read what `to_text` has written."""
        now, learnt, told, probed, ended = json.loads(text)
        return Times(now, learnt, told, tuple((instant, before) for instant, before in probed), ended)


class Ends:
    """The times at which the live rows of a scan end, each once, in order."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._bounds = memory.array("bounds", np.int64, 2)
        self._times = memory.array("times", np.int64, 64)

    def pass_to(self, exp: Ints, clock: int) -> Ints:
        """Add the ends of new rows, and remove and return those before the clock."""
        first, last = int(self._bounds[0]), int(self._bounds[1])
        new = _distinct(exp)
        if len(new) and last > first and new[0] <= self._times[last - 1]:
            new = np.union1d(self._times[first:last], new)
            first = last = 0
        if last + len(new) > len(self._times):
            waiting = self._times[first:last].copy()
            first, last = 0, len(waiting)
            if 2 * (last + len(new)) > len(self._times):
                self._times = self._memory.grow("times", np.int64, 2 * (last + len(new)))
            self._times[:last] = waiting
        self._times[last : last + len(new)] = new
        last += len(new)
        passed = first + int(np.searchsorted(self._times[first:last], clock, side="left"))
        ended = self._times[first:passed].copy()
        self._bounds[:] = passed, last
        return ended


def _distinct(exp: Ints) -> Ints:
    """The ends of rows, each once, in order; those of one window are in order already."""
    if len(exp) and exp.max() >= FOREVER:
        exp = exp[exp < FOREVER]
    if len(exp) < 2:
        return exp
    grows = exp[1:] > exp[:-1]
    if grows.all():
        return exp
    if (exp[1:] < exp[:-1]).any():
        return np.unique(exp)
    kept: Ints = exp[np.append(True, grows)]
    return kept
