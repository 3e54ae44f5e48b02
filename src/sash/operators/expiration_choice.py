"""How the output rows of a negation end in the operators above it: by calendar or by negative tuples (paper 5, 5.3.2).

By calendar, a row carries its expiration time. Operators above keep it in a calendar, and only a row that ends
prematurely is retracted; a partition is then searched for it. By negative tuples, every row ends by a retraction, and
rows are found by their values. Each row shows its method (an expiration time, or FOREVER), so the method may change
between any two rows without changes to existing state: earlier rows end by the method under which they were sent. The times
of these changes are kept for as long as rows live, so that an operator that is rebuilt gives every row the method that it
had: the rows may be in the log of another stage.

The cheaper method depends on the share of rows that end prematurely and on the length of a partition. Both are observed,
and as of full windows: a row sent by calendar stays there for as long as it lives, so while windows fill, when few rows have
ended and partitions are short, the calendar would be chosen too early. Rows are taken to end prematurely at a constant rate:
the number of such ends over the time that rows have stood in the output, or, where a row on the right ends one row however
many there are, over the rows sent; with the length of a life, the share and the
length of a partition in full windows follow. The method changes only if the other one is cheaper by a fifth, so that it
does not alternate around the break-even point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sash.state.changes import ChangeBatch
from sash.state.memory import Ints, Memory
from sash.time import FOREVER

WORTH: Final = 1.2
"""The method changes if it costs more than this many times the other."""

PATIENCE: Final = 4096
"""The number of output rows between two decisions is at least this, and at least the number of live rows."""

RETRACTION: Final = 14.5
"""The cost of storing a row by its value and retracting it, in steps along a partition (of about 25 ns)."""

COUNTED_RETRACTION: Final = 10.0
"""The same above an EXCEPT ALL, where both operators count the copies of a value instead of storing rows."""

MESSAGE: Final = 10.0
"""The cost of sending a retraction to another stage, and of writing it to its log: premature ends are sent in any case."""

CALENDAR_REMOVAL: Final = 8.0
"""The cost of removing a retracted row from a calendar, in addition to the steps along its partition."""

_SET, _CALENDAR, _STANDING, _GIVEN, _PREMATURE, _SINCE, _CHANGES, _SHARE, _LENGTH = range(9)
_BEGUN, _CLOCK, _SPAN, _EXPOSURE, _ROWS, _LIFE = range(6)
"""The first and the last clock; since the last decision, the time that has passed and the sum of the times that rows have
stood in the output; and of all rows that came, their number and the sum of the lives that they came with."""

_LONGEST, _PERIODS = 0, 1
"""Of the method's history: the longest life of a row, and the number of periods, whose beginnings and methods follow."""

_ALWAYS: Final = -(2**63)
_MOST_PERIODS: Final = 16
"""The number of periods that are kept: the method does not change if rows of all of them may live."""


@dataclass(frozen=True)
class ExpirationPlan:
    """The planner's estimates: the share of rows that end prematurely (None: unknown), the number of live output rows, the
    number of partitions of the calendars above, and the cost of a retraction. With `fixed` the initial method is kept.
    `together`: a row on the right ends all rows of its value, so that more end where more stand; otherwise it ends one.
    `sent`: another stage reads the rows; it begins with negative tuples, as do checkpoints that know of no other method."""

    share: float | None
    rows: float
    partitions: int
    retraction: float = RETRACTION
    fixed: bool = False
    together: bool = True
    sent: bool = False

    @property
    def calendar(self) -> bool:
        """Whether the initial method is the calendar."""
        if self.sent:
            return False
        return self.share is not None and cost(self.share, self.rows / self.partitions) < self.retraction

    @property
    def reason(self) -> str:
        """The initial method and its reason, for EXPLAIN."""
        if self.sent:
            return "ends by negative tuples at first, as another stage reads it"
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
        self._together = planned.together
        self._message = MESSAGE if planned.sent else 0.0
        self._marks = memory.array("marks", np.float64, _LENGTH + 1)
        self._times = memory.array("times", np.float64, _LIFE + 1)
        self._history = memory.array("history", np.int64, 2 + 2 * _MOST_PERIODS)
        self._replayed = -math.inf
        if not self._marks[_SET]:
            self._marks[_SET] = 1
            self._marks[_CALENDAR] = planned.calendar

    @property
    def calendar(self) -> bool:
        """Whether rows carry their expiration times."""
        return bool(self._marks[_CALENDAR])

    @property
    def learnt(self) -> dict[str, list[float]]:
        """The method, its reason, the counts so far, and the methods of rows that may live."""
        return {} if self._fixed else {name: array.tolist() for name, array in self._arrays.items()}

    def recall(self, learnt: Mapping[str, Sequence[float]]) -> None:
        """Take over what `learnt` has returned: no decision is made again up to the clock that it knew."""
        if self._fixed:
            return
        for name, array in self._arrays.items():
            if len(learnt.get(name, ())) == len(array):
                array[:] = learnt[name]
        self._replayed = float(self._times[_CLOCK])

    @property
    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"marks": self._marks, "times": self._times, "history": self._history}

    def stamps(self, ts: Ints, exp: Ints) -> Ints:
        """The `exp` column of output rows that came and expire at these times, by the methods of these times."""
        if len(exp):
            lives = exp - ts
            self._times[_ROWS] += len(exp)
            self._times[_LIFE] += float(lives.sum(dtype=np.float64))
            self._history[_LONGEST] = max(self._history[_LONGEST], lives.max())
        begins, methods = self._periods
        if not len(begins) or (len(ts) and ts[0] >= begins[-1]):
            return exp if self.calendar else np.full(len(exp), FOREVER)
        period = np.maximum(np.searchsorted(begins, ts, side="right") - 1, 0)
        return np.where(methods[period] > 0, exp, FOREVER)

    @property
    def _periods(self) -> tuple[Ints, Ints]:
        """When the methods of rows that may live began, and whether each is the calendar; empty before the first change."""
        count = int(self._history[_PERIODS])
        periods = self._history[2 : 2 + 2 * count].reshape(count, 2)
        return periods[:, 0], periods[:, 1]

    def _begin_period(self, clock: int) -> bool:
        """Note that the method changes at the clock; False if too many methods are in use for that."""
        begins, methods = self._periods
        known = list(zip(begins.tolist(), methods.tolist(), strict=True)) or [(_ALWAYS, int(self.calendar))]
        while len(known) > 1 and known[1][0] <= clock - self._history[_LONGEST]:
            del known[0]
        if len(known) == _MOST_PERIODS:
            return False
        known.append((clock, int(not self.calendar)))
        self._history[_PERIODS] = len(known)
        self._history[2 : 2 + 2 * len(known)] = [value for period in known for value in period]
        return True

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
        if clock <= self._replayed:
            return
        marks = self._marks
        given = int((output.sign > 0).sum())
        before = marks[_STANDING]
        marks[_STANDING] += 2 * given - len(output) - silent
        marks[_GIVEN] += given
        marks[_PREMATURE] += premature
        if clock == FOREVER:
            return
        self._pass_time(output, (before + marks[_STANDING]) / 2, clock)
        if self._fixed or marks[_GIVEN] < max(PATIENCE, marks[_STANDING]):
            return
        share, rows = self._in_full_windows()
        length = rows / self._partitions
        marks[_GIVEN] = marks[_PREMATURE] = 0
        self._times[_SPAN] = self._times[_EXPOSURE] = 0
        searched = cost(share, length)
        retracted = self._retraction + self._message * (1 - share)
        old, new = (searched, retracted) if self.calendar else (retracted, searched)
        if old < WORTH * new or not self._begin_period(clock):
            return
        marks[_CALENDAR] = not self.calendar
        marks[_SINCE], marks[_SHARE], marks[_LENGTH] = clock, share, length
        marks[_CHANGES] += 1

    def _pass_time(self, output: ChangeBatch, standing: float, clock: int) -> None:
        """Let the rows that stand in the output stand there until the clock."""
        times = self._times
        begun = times[_CLOCK] or (float(output.ts[0]) if len(output) else float(clock))
        times[_BEGUN] = times[_BEGUN] or begun
        times[_SPAN] += clock - begun
        times[_EXPOSURE] += (clock - begun) * standing
        times[_CLOCK] = clock

    def _in_full_windows(self) -> tuple[float, float]:
        """The share of rows that end prematurely, and the number of rows in the output, once windows are full."""
        given, premature, times = self._marks[_GIVEN], self._marks[_PREMATURE], self._times
        life = times[_LIFE] / times[_ROWS] if times[_ROWS] else 0.0
        filling = times[_CLOCK] - times[_SPAN] / 2 < times[_BEGUN] + life
        if not filling or times[_SPAN] <= 0 or times[_EXPOSURE] <= 0:
            return min(1.0, premature / given), float(self._marks[_STANDING])
        rate, ends = given / times[_SPAN], premature / times[_EXPOSURE]
        if not self._together:
            share = min(1.0, premature / given)
            return share, float(max(self._marks[_STANDING], rate * life * (1 - share)))
        share = -math.expm1(-ends * life)
        most = times[_ROWS] * life / (times[_CLOCK] - times[_BEGUN])
        return share, float(min(most, rate * (share / ends if ends > 0 else life)))
