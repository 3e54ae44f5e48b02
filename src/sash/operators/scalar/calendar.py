"""Dates and times made of fields, differences between them, and the names of days and months."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, Numbers, kernel
from sash.operators.scalar.datetime_patterns import DAYS, MONTHS
from sash.operators.scalar.function import Function, by_value, one
from sash.operators.scalar.zones import known_zone, to_utc
from sash.time import DAY, HOUR, MINUTE, SECOND

_UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": SECOND, "MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY, "DAYOFYEAR": DAY,
    "WEEK": 7 * DAY,
}  # fmt: skip
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAY_NAMES = {name[:length].upper(): number for number, name in enumerate(DAYS) for length in (2, 3, len(name))}
_TRUNCATED = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 12), **dict.fromkeys(("MONTH", "MON", "MM"), 1), "QUARTER": 3,
}  # fmt: skip


def _days_of(year: int, month: int, day: int) -> int | None:
    """Days since 1970; None if there is no such date."""
    if not 1 <= month <= 12 or not -290_000 < year < 290_000:
        return None
    months = (year - 1970) * 12 + month - 1
    first, following = (int(np.datetime64(each, "M").astype("M8[D]").astype(np.int64)) for each in (months, months + 1))
    return first + day - 1 if 1 <= day <= following - first else None


def _make_date(year: int, month: int, day: int) -> int:
    days = _days_of(year, month, day)
    if days is None:
        raise EvaluationError(f"make_date: there is no date {year}-{month}-{day}")
    return days


def _make_timestamp(lenient: bool) -> Callable[..., int | None]:
    def run(
        year: int, month: int, day: int, hour: int, minute: int, second: Decimal, zone: str | None = None
    ) -> int | None:
        days = _days_of(year, month, day)
        whole = int(second)
        # A second of exactly 60 is the next minute, as in PostgreSQL.
        good = (
            days is not None and 0 <= hour < 24 and 0 <= minute < 60 and second >= 0 and (second < 60 or second == 60)
        )
        if not good or days is None:
            if lenient:
                return None
            raise EvaluationError(f"make_timestamp: there is no time {year}-{month}-{day} {hour}:{minute}:{second}")
        micros = days * DAY + ((hour * 60 + minute) * 60 + whole) * SECOND + int((second - whole) * SECOND)
        if zone is not None:
            micros = int(to_utc(np.array([micros], np.int64), known_zone("make_timestamp", zone))[0])
        return micros

    return run


def _weekday(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """0 for Monday to 6 for Sunday."""
    (days,) = arrays.broadcast_all(arguments)
    return arrays.from_numbers(((arrays.numbers(days).astype(np.int64) + 3) % 7).astype(np.int32), dtype, [days])


def _name(of: str) -> Callable[[Sequence[Datum], pa.DataType], Array]:
    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        (days,) = arrays.broadcast_all(arguments)
        numbers = arrays.numbers(days).astype(np.int64)
        names: Sequence[str] = DAYS if of == "day" else MONTHS
        months = numbers.astype("M8[D]").astype("M8[M]").astype(np.int64)
        index = (numbers + 3) % 7 if of == "day" else months % 12
        found: Array = pa.array([name[:3] for name in names]).take(pa.array(index))
        return arrays.nullify(found, kernel("is_null", days))

    return run


def _next_day(days: int, name: str) -> int:
    """The first day of that name after the date."""
    wanted = _DAY_NAMES.get(name.strip().upper())
    if wanted is None:
        raise EvaluationError(f"next_day: '{excerpt(name)}' is not the name of a day; write one such as 'Mon'")
    return days + 1 + (wanted - (days + 1 + 3)) % 7


def _trunc(days: int, unit: str) -> int | None:
    """The first day of the year, quarter, month or week; None for another unit."""
    unit = unit.upper()
    if unit == "WEEK":
        return days - (days + 3) % 7
    if unit not in _TRUNCATED:
        return None
    months = int(np.datetime64(days, "D").astype("M8[M]").astype(np.int64))
    return int(np.datetime64(months - months % _TRUNCATED[unit], "M").astype("M8[D]").astype(np.int64))


def _months_between(end: int, start: int, round_off: bool = True) -> float:
    """Months between two times: whole if both are on the same day or last days, else with a 31st part per day."""
    (months1, day1, last1, rest1), (months2, day2, last2, rest2) = _split(end), _split(start)
    whole = float(months1 - months2)
    if day1 == day2 or (last1 and last2):
        return whole
    seconds = (day1 - day2) * 86400 + rest1 // SECOND - rest2 // SECOND
    difference = whole + seconds / (31 * 86400)
    return _round8(difference) if round_off else difference


def _split(micros: int) -> tuple[int, int, bool, int]:
    """Months since 1970, the day, whether it is the last of its month, and the time of the day."""
    days = micros // DAY
    months = int(np.datetime64(days, "D").astype("M8[M]").astype(np.int64))
    day = days - int(np.datetime64(months, "M").astype("M8[D]").astype(np.int64)) + 1
    last = calendar.monthrange((months // 12 + 1970) % 400 + 2000, months % 12 + 1)[1]
    return months, day, day == last, micros - days * DAY


def _round8(value: float) -> float:
    scaled = value * 1e8
    return float(np.floor(abs(scaled) + 0.5) * np.sign(scaled)) / 1e8


def _add_units(unit: str, amount: int, micros: int) -> int:
    """A timestamp some units later."""
    if unit in _UNITS:
        return micros + amount * _UNITS[unit]
    months, day, _, rest = _split(micros)
    target = months + amount * _MONTHS[unit]
    first, following = (int(np.datetime64(each, "M").astype("M8[D]").astype(np.int64)) for each in (target, target + 1))
    return (first + min(day, following - first) - 1) * DAY + rest


def _difference(unit: str, start: int, end: int) -> int:
    """Whole units from one timestamp to another."""
    if unit in _UNITS:
        difference = end - start
        return difference // _UNITS[unit] if difference >= 0 else -(-difference // _UNITS[unit])
    (months1, day1, _, rest1), (months2, day2, _, rest2) = _split(start), _split(end)
    months = months2 - months1
    if months > 0 and (day2, rest2) < (day1, rest1):
        months -= 1
    elif months < 0 and (day2, rest2) > (day1, rest1):
        months += 1
    return int(months / _MONTHS[unit])


def _unit(function: Callable[..., int]) -> Function:
    def checked(unit: str, first: Any, second: Any) -> int:
        result = function(unit, first, second)
        if not -(2**63) <= result < 2**63:
            raise pa.ArrowInvalid("overflow")
        return result

    return by_value(checked, 3, fails=True)


def _as_integers(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    (values,) = arrays.broadcast_all(arguments)
    return values.view(dtype)


def _week_year(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The year of the ISO week: that of its Thursday."""
    (days,) = arrays.broadcast_all(arguments)
    numbers = arrays.numbers(days).astype(np.int64)
    thursday: Numbers = numbers - (numbers + 3) % 7 + 3
    years = thursday.astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970
    return arrays.from_numbers(years.astype(np.int32), dtype, [days])


def _seconds(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Seconds of the minute with their fraction, DECIMAL(8, 6)."""
    (moments,) = arrays.broadcast_all(arguments)
    micros = arrays.numbers(moments) % MINUTE
    scaled: Array = pa.array(micros).cast(pa.decimal128(19, 0))
    wide = kernel("divide", scaled.cast(pa.decimal128(25, 6)), pa.scalar(Decimal(SECOND)))
    return arrays.nullify(wide.cast(dtype, safe=False), kernel("is_null", moments))


UNITS = frozenset((*_UNITS, *_MONTHS))
"""Units of TIMESTAMPADD and TIMESTAMPDIFF."""

FUNCTIONS: dict[str, Function] = {
    "make_date": by_value(_make_date, 3, fails=True),
    "make_timestamp": by_value(_make_timestamp(False), 6, 7, fails=True),
    "make_timestamp_ntz": by_value(_make_timestamp(False), 6, fails=True),
    "try_make_timestamp": by_value(_make_timestamp(True), 6, 7, fails=True),
    "try_make_timestamp_ntz": by_value(_make_timestamp(True), 6, fails=True),
    "weekday": one(_weekday),
    "dayname": one(_name("day")),
    "monthname": one(_name("month")),
    "next_day": by_value(_next_day, 2, fails=True),
    "trunc": by_value(_trunc, 2),
    "months_between": by_value(_months_between, 2, 3),
    "timestampadd": _unit(_add_units),
    "timestampdiff": _unit(_difference),
    "unix_date": one(_as_integers),
    "date_from_unix_date": one(_as_integers),
    "yearofweek": one(_week_year),
    "seconds_of_minute": one(_seconds),
}
