"""How a negation lets the operators above it learn that its rows end: by calendar or by negative tuples (paper 5, 5.3.2).

By calendar a row carries the time at which it expires by itself. Whoever is above keeps it in a calendar, and a `-` row is
said only where the row ends prematurely: then a partition is searched for it. By negative tuples every end is a `-` row,
and rows are found by their values. A row carries its way with it (an `exp`, or FOREVER), so the way may change between any
two rows without anything kept having to change; the rows that were handed over the old way end that way.

Which way is cheaper depends on the share of rows that end prematurely and on how long a partition is. Both are counted;
the way changes when the other would be cheaper by a fifth, so that a share that wavers about the border, or a gain that is
small, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sash.state.changes import ChangeBatch
from sash.state.memory import Ints, Memory
from sash.time import FOREVER

WORTH: Final = 1.2
"""How many times as much the way in force must cost before it is left."""

PATIENCE: Final = 4096
"""So many rows at least, and as many as stand in the output, are handed over before the counts are believed."""

SAID: Final = 18.0
"""What it costs to have a row put where its value says and its end said, in steps along a partition (of about 25 ns)."""

COUNTED: Final = 10.0
"""The same above an EXCEPT ALL, which counts the copies of a value instead of keeping them, as does who finds them by it."""

SEARCHED: Final = 8.0
"""What it costs that a row is taken back out of a calendar, beside the steps along its partition."""

_SET, _CALENDAR, _STANDING, _GIVEN, _PREMATURE, _SINCE, _CHANGES, _SHARE, _LENGTH = range(9)


@dataclass(frozen=True)
class Ends:
    """What the planner knows: the share of rows expected to end prematurely (None: it cannot tell), how many rows are
    expected in the output, into how many partitions the operators above put them, and what it costs to have an end said.
    With `fixed` the way to begin with is kept."""

    share: float | None
    rows: float
    partitions: int
    said: float = SAID
    fixed: bool = False

    @property
    def calendar(self) -> bool:
        """Whether to begin by calendar."""
        return self.share is not None and cost(self.share, self.rows / self.partitions) < self.said

    @property
    def reason(self) -> str:
        """The way to begin with, and why."""
        if self.share is None:
            return "ends by negative tuples at first: how many are premature is to be seen"
        way = "calendar" if self.calendar else "negative tuples"
        return f"ends by {way} at first: {self.share:.0%} premature expected"


def cost(share: float, length: float) -> float:
    """What a row costs by calendar, in steps: half of a partition is searched for one that ends prematurely.

    >>> cost(share=0.25, length=32) < SAID, cost(share=0.25, length=1000) < SAID
    (True, False)
    """
    return share * (SEARCHED + length / 2)


class Ending:
    """The way in force, with what has been counted, in the memory of the operator that gives the rows."""

    def __init__(self, memory: Memory, planned: Ends) -> None:
        self._partitions = planned.partitions
        self._said = planned.said
        self._fixed = planned.fixed
        self._marks = memory.array("marks", np.float64, _LENGTH + 1)
        if not self._marks[_SET]:
            self._marks[_SET] = 1
            self._marks[_CALENDAR] = planned.calendar

    @property
    def calendar(self) -> bool:
        """Whether rows carry the time at which they expire."""
        return bool(self._marks[_CALENDAR])

    def stamps(self, exp: Ints) -> Ints:
        """What rows that expire at these times are handed over with."""
        return exp if self.calendar else np.full(len(exp), FOREVER)

    @property
    def changes(self) -> int:
        """How often the way has changed."""
        return int(self._marks[_CHANGES])

    @property
    def in_force(self) -> tuple[str, str]:
        """The way in force, and why."""
        way = f"ends by {'calendar' if self.calendar else 'negative tuples'}"
        if not self.changes:
            return way, "as planned"
        share, length = self._marks[_SHARE], self._marks[_LENGTH]
        since = f"since {int(self._marks[_SINCE])} (change {self.changes})"
        return way, f"{since}: {share:.0%} premature, {length:,.1f} rows a partition"

    def observe(self, output: ChangeBatch, silent: int, premature: int, clock: int) -> None:
        """Count what was handed over, what ended without a word and what prematurely; see whether the other way pays."""
        marks = self._marks
        given = int((output.sign > 0).sum())
        marks[_STANDING] += 2 * given - len(output) - silent
        marks[_GIVEN] += given
        marks[_PREMATURE] += premature
        if self._fixed or clock == FOREVER or marks[_GIVEN] < max(PATIENCE, marks[_STANDING]):
            return
        share, length = min(1.0, marks[_PREMATURE] / marks[_GIVEN]), marks[_STANDING] / self._partitions
        marks[_GIVEN] = marks[_PREMATURE] = 0
        searched = cost(share, length)
        old, new = (searched, self._said) if self.calendar else (self._said, searched)
        if old < WORTH * new:
            return
        marks[_CALENDAR] = not self.calendar
        marks[_SINCE], marks[_SHARE], marks[_LENGTH] = clock, share, length
        marks[_CHANGES] += 1
