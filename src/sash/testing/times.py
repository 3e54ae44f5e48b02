"""Times in the unit of a replay: numbers, datetimes and dates become microseconds, and microseconds numbers again."""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sash.arguments import check_number, check_word, shown
from sash.durations import LONGEST
from sash.errors import OptionError, SashError
from sash.plan.types import BIGINT, DOUBLE, TIMESTAMP
from sash.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

UNITS = {"us": MICROSECOND, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR}

Instant = float | datetime.datetime | datetime.date
"""A time as users write it: a number in the replay's unit, or a datetime (a naive one is in UTC)."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FIRST, _END = -719_162 * DAY, 2_932_897 * DAY
"""The beginning of the year 1, and the end of the year 9999."""


@dataclass(frozen=True)
class TimeUnit:
    """The unit in which a replay's times are written: "us", "ms", "s", "m" or "h".

    With `datetimes`, tables show times as datetimes, because those of the rows were given so.
    """

    name: str
    datetimes: bool = False

    def __post_init__(self) -> None:
        check_word("unit", self.name, tuple(UNITS))

    @property
    def scale(self) -> int:
        """The microseconds of one unit."""
        return UNITS[self.name]

    def instant(self, what: str, value: object, error: type[SashError] = OptionError) -> int:
        """The microseconds since 1970 of a number in this unit, a datetime (a naive one is in UTC) or a date.

        >>> TimeUnit("s").instant("until", 1.5), TimeUnit("s").instant("until", datetime.datetime(1970, 1, 1, 0, 1))
        (1500000, 60000000)
        """
        match value:
            case datetime.datetime() if value == value:  # noqa: PLR0124  (NaT of pandas differs from itself)
                return self._of_datetime(what, value, error)
            case datetime.date() if not isinstance(value, datetime.datetime):
                return (value.toordinal() - _EPOCH.toordinal()) * DAY
            case bool():
                pass
            case numbers.Real():
                return self._of_number(what, value, error)
        raise error(f"{what} must be a number of {self.name}, or a datetime, not {shown(value)}")

    def length(self, what: str, value: object, least: float = 0, error: type[SashError] = OptionError) -> int:
        """The microseconds of a length of time, a number in this unit; `least` is in microseconds."""
        micros = round(self.exact_length(what, value, error))
        if micros < least:
            raise error(f"{what} must be at least 1 microsecond, not {shown(value)} {self.name}")
        return micros

    def exact_length(self, what: str, value: object, error: type[SashError] = OptionError) -> float:
        """The microseconds of a length of time that need not be whole."""
        micros = check_number(what, value, error=error) * self.scale
        if micros > LONGEST:
            raise error(f"{what} must be shorter than 10,000 years, not {shown(value)} {self.name}")
        return micros

    def number(self, micros: int) -> int | float:
        """Microseconds as a number in this unit.

        >>> TimeUnit("ms").number(2_000), TimeUnit("ms").number(2_500)
        (2, 2.5)
        """
        return micros // self.scale if micros % self.scale == 0 else micros / self.scale

    def value(self, number: float) -> int | float | datetime.datetime:
        """A number in this unit as tables show it: as it is, or as a datetime in UTC."""
        micros = round(number * self.scale)
        return _EPOCH + datetime.timedelta(microseconds=micros) if self.datetimes and micros < _END else number

    def column(self, numbers: Sequence[float]) -> pa.Array:
        """Numbers in this unit as a column: of timestamps, of integers, or of doubles if one of them is not whole."""
        if self.datetimes:
            return pa.array([round(number * self.scale) for number in numbers], pa.int64()).cast(TIMESTAMP)
        whole = all(isinstance(number, int) for number in numbers)
        return pa.array(numbers, BIGINT if whole else DOUBLE)

    def shown(self, number: float) -> str:
        """A number in this unit as text."""
        return str(self.value(number)) if self.datetimes else f"{number:,} {self.name}"

    def limit(self, instant: Instant) -> int | float:
        """The number in this unit of an instant, which may be infinite: after all others."""
        if isinstance(instant, float) and math.isinf(instant):
            return instant
        return self.number(self.instant("the instant", instant))

    def _of_datetime(self, what: str, value: datetime.datetime, error: type[SashError]) -> int:
        if getattr(value, "nanosecond", 0):
            raise error(f"{what} has nanoseconds: round it to microseconds, {shown(value)}")
        aware = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value
        micros = (aware - _EPOCH) // datetime.timedelta(microseconds=1)
        if not _FIRST <= micros < _END:
            raise error(f"{what} is outside of the years 1 to 9999 in UTC: {shown(value)}")
        return micros

    def _of_number(self, what: str, value: numbers.Real, error: type[SashError]) -> int:
        exact = int(value) if isinstance(value, numbers.Integral) else float(value)
        if isinstance(exact, float) and not math.isfinite(exact):
            raise error(f"{what} must be a finite number of {self.name}, or a datetime, not {shown(value)}")
        micros = exact * self.scale
        if not _FIRST <= micros < _END:
            raise error(f"{what} is outside of the years 1 to 9999, if {shown(value)} is in the unit {self.name!r}")
        if abs(round(micros) - micros) > 1e-3:
            raise error(f"{what} must be a number of whole microseconds, not {shown(value)} {self.name}")
        return round(micros)
