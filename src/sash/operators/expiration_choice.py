"""How the output rows of a negation end in the operators above it: by calendar or by negative tuples (paper 5, 5.3.2).

By calendar, a row carries its expiration time. Operators above keep it in a calendar, and only a row that ends
prematurely is retracted; a partition is then searched for it. By negative tuples, every row ends by a retraction, and
rows are found by their values. Each row shows its method (an expiration time, or FOREVER), so the method may change
between any two rows without changes to existing state: earlier rows end by the method under which they were sent.

The cheaper method depends on the share of rows that end prematurely and on the length of a partition. Both are counted.
The method changes only if the other one is cheaper by a fifth, so that it does not alternate around the break-even point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sash.state.changes import ChangeBatch
from sash.state.memory import Ints, Memory
from sash.time import FOREVER

WORTH: Final = 1.2
"""The method changes if it costs more than this many times the other."""

PATIENCE: Final = 4096
"""The number of output rows between two decisions is at least this, and at least the number of live rows."""

RETRACTION: Final = 18.0
"""The cost of storing a row by its value and retracting it, in steps along a partition (of about 25 ns)."""

COUNTED_RETRACTION: Final = 10.0
"""The same above an EXCEPT ALL, where both operators count the copies of a value instead of storing rows."""

CALENDAR_REMOVAL: Final = 8.0
"""The cost of removing a retracted row from a calendar, in addition to the steps along its partition."""

_SET, _CALENDAR, _STANDING, _GIVEN, _PREMATURE, _SINCE, _CHANGES, _SHARE, _LENGTH = range(9)


@dataclass(frozen=True)
class ExpirationPlan:
    """The planner's estimates: the share of rows that end prematurely (None: unknown), the number of live output rows, the
    number of partitions of the calendars above, and the cost of a retraction. With `fixed` the initial method is kept."""

    share: float | None
    rows: float
    partitions: int
    retraction: float = RETRACTION
    fixed: bool = False

    @property
    def calendar(self) -> bool:
        """Whether the initial method is the calendar."""
        return self.share is not None and cost(self.share, self.rows / self.partitions) < self.retraction

    @property
    def reason(self) -> str:
        """The initial method and its reason, for EXPLAIN."""
        if self.share is None:
            return "ends by negative tuples at first: the share of premature ends is unknown"
        method = "calendar" if self.calendar else "negative tuples"
        return f"ends by {method} at first: {self.share:.0%} premature expected"


def cost(share: float, length: float) -> float:
    """The cost of a row by calendar, in steps: half of a partition is searched if it ends prematurely.

    >>> cost(share=0.25, length=32) < RETRACTION, cost(share=0.25, length=1000) < RETRACTION
    (True, False)
    """
    return share * (CALENDAR_REMOVAL + length / 2)


class ExpirationChoice:
    """The current method and the counts for its choice, in the memory of the operator that outputs the rows."""

    def __init__(self, memory: Memory, planned: ExpirationPlan) -> None:
        self._partitions = planned.partitions
        self._retraction = planned.retraction
        self._fixed = planned.fixed
        self._marks = memory.array("marks", np.float64, _LENGTH + 1)
        if not self._marks[_SET]:
            self._marks[_SET] = 1
            self._marks[_CALENDAR] = planned.calendar

    @property
    def calendar(self) -> bool:
        """Whether rows carry their expiration times."""
        return bool(self._marks[_CALENDAR])

    @property
    def learnt(self) -> dict[str, list[float]]:
        """The method, its reason, and the counts so far."""
        return {"marks": self._marks.tolist()}

    def recall(self, learnt: Mapping[str, Sequence[float]]) -> None:
        """Take over what `learnt` has returned."""
        marks = learnt.get("marks", ())
        if len(marks) == len(self._marks) and not self._fixed:
            self._marks[:] = marks

    def stamps(self, exp: Ints) -> Ints:
        """The `exp` column of output rows that expire at these times."""
        return exp if self.calendar else np.full(len(exp), FOREVER)

    @property
    def changes(self) -> int:
        """How often the method has changed."""
        return int(self._marks[_CHANGES])

    @property
    def current_choice(self) -> tuple[str, str]:
        """The current method and its reason."""
        method = f"ends by {'calendar' if self.calendar else 'negative tuples'}"
        if not self.changes:
            return method, "as planned"
        share, length = self._marks[_SHARE], self._marks[_LENGTH]
        since = f"since {int(self._marks[_SINCE])} (change {self.changes})"
        return method, f"{since}: {share:.0%} premature, {length:,.1f} rows a partition"

    def observe(self, output: ChangeBatch, silent: int, premature: int, clock: int) -> None:
        """Count output rows and those that ended silently and prematurely; change the method if the other is cheaper."""
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
        old, new = (searched, self._retraction) if self.calendar else (self._retraction, searched)
        if old < WORTH * new:
            return
        marks[_CALENDAR] = not self.calendar
        marks[_SINCE], marks[_SHARE], marks[_LENGTH] = clock, share, length
        marks[_CHANGES] += 1
