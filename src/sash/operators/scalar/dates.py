"""Dates and timestamps: fields, truncation and arithmetic in the proleptic Gregorian calendar and in UTC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar import arrays, decimals
from sash.operators.scalar.arrays import Array, Datum, Numbers, kernel
from sash.operators.scalar.casts import cast
from sash.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND, WEEK

_NAIVE = pa.timestamp("us")
_MONTHS = {"year": 12, "yyyy": 12, "yy": 12, "quarter": 3, "month": 1, "mon": 1, "mm": 1}
_MICROS = {
    "microsecond": 1,
    "millisecond": MILLISECOND,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "dd": DAY,
}


def field(name: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """A field of a date or timestamp, under Arrow's `name` for it."""
    values = _moments(arguments[0]) if name in ("hour", "minute", "second") else _days_or_moments(arguments[0])
    return kernel(name, arrays.within_calendar(values)).cast(dtype)


def day_of_week(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """1 for Sunday to 7 for Saturday."""
    options = pc.DayOfWeekOptions(count_from_zero=False, week_start=7)
    return kernel("day_of_week", arrays.within_calendar(_days_or_moments(arguments[0])), options=options).cast(dtype)


def date_add(sign: int, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The date some days later (1) or earlier (-1)."""
    days, count = _days(arguments[0]).view(pa.int32()), arguments[1].cast(pa.int32())
    return kernel("add_checked" if sign > 0 else "subtract_checked", days, count).view(dtype)


def date_diff(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Days from the second date to the first."""
    end, start = (_days(argument).view(pa.int32()) for argument in arrays.broadcast_all(arguments))
    return kernel("subtract_checked", end, start)


def date_trunc(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The start of the unit that the timestamp is in; NULL for a unit that Spark does not know."""
    unit, moment = arguments

    def run(values: Array, name: str) -> Array:
        name, micros = name.lower(), arrays.numbers(values)
        if name in _MONTHS:
            months = _floor(micros.view("M8[us]").astype("M8[M]").astype(np.int64), _MONTHS[name])
            start = months.astype("M8[M]").astype("M8[us]").astype(np.int64)
        elif name == "week":
            # Day 0 was a Thursday; weeks start on Mondays.
            start = _floor(micros + 3 * DAY, WEEK) - 3 * DAY
        elif name in _MICROS:
            start = _floor(micros, _MICROS[name])
        else:
            return arrays.nulls(len(values), dtype)
        if (start > micros).any():
            raise pa.ArrowInvalid("overflow")
        return arrays.from_numbers(start, dtype, [values])

    return arrays.for_each_parameter(run, _moments(arrays.broadcast_all([moment, unit])[0]), [unit], dtype)


def to_date(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """TO_DATE without a format, or DATE(...): a cast."""
    return _days(arguments[0])


def last_day(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The last day of the date's month."""
    days = _days(arguments[0])
    following = arrays.numbers(days).astype("M8[D]").astype("M8[M]") + np.timedelta64(1, "M")
    return arrays.from_numbers(_as_days(following.astype("M8[D]").astype(np.int64) - 1), dtype, [days])


def add_months(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The same day some months later, or the last day of a shorter month."""
    days, count = arrays.broadcast_all(arguments)
    days = _days(days)
    dates = arrays.numbers(days).astype("M8[D]")
    months = dates.astype("M8[M]")
    day = (dates - months.astype("M8[D]")).astype(np.int64)
    target = months.astype(np.int64) + arrays.numbers(count).astype(np.int64)
    first = target.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (target + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    moved = _as_days(first + np.minimum(day, following - first - 1))
    return arrays.from_numbers(moved, dtype, [days, count])


def unix_timestamp(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Seconds since 1970, truncated towards zero as in Spark; all other functions round down."""
    moments = _moments(arguments[0])
    return kernel("divide", moments.view(pa.int64()), pa.scalar(SECOND))


def unix_time(micros: int, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Whole units of a number of microseconds since 1970, rounded down."""
    moments = _moments(arguments[0])
    return arrays.from_numbers(arrays.numbers(moments) // micros, dtype, [moments])


def timestamp_from(micros: int, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The timestamp from a number of units since 1970; the number may have a fraction."""
    (values,) = arrays.broadcast_all(arguments)
    if pa.types.is_integer(values.type):
        return kernel("multiply_checked", values.cast(pa.int64()), pa.scalar(micros)).view(dtype)
    if pa.types.is_floating(values.type):
        values = arrays.nullify(values, kernel("invert", kernel("is_finite", values)))
        scaled = kernel("multiply", values.cast(pa.float64()), pa.scalar(float(micros)))
        return cast(scaled, pa.int64()).view(dtype)
    # More than six fractional digits are an error, as in Spark.
    wide = values.cast(pa.decimal256(50, decimals.shape(values.type)[1]))
    factor = pa.scalar(micros).cast(pa.decimal256(19, 0))
    return kernel("multiply_checked", wide.cast(pa.decimal256(50, 6)), factor).cast(pa.int64()).view(dtype)


def add_micros(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The timestamp plus a number of microseconds."""
    moment, micros = arrays.broadcast_all(arguments)
    return kernel("add_checked", _moments(moment).view(pa.int64()), micros.cast(pa.int64())).view(dtype)


def window_bound(end: bool, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The start, or the end, of the window that a time is in, of those with this size that start at multiples of it after
    an origin (microseconds)."""
    moments, size, origin = arrays.broadcast_all(arguments)
    times, sizes, origins = (arrays.numbers(_moments(moments)), arrays.numbers(size), arrays.numbers(origin))
    bounds = times - (times - origins) % sizes + (sizes if end else 0)
    return arrays.from_numbers(bounds, pa.int64(), [moments]).view(dtype)


def _as_days(numbers: Numbers) -> Numbers:
    """Days since 1970 as those of a DATE; an overflow if they do not fit."""
    if ((numbers < -(2**31)) | (numbers >= 2**31)).any():
        raise pa.ArrowInvalid("overflow")
    return numbers.astype(np.int32)


def _floor(values: Numbers, unit: int) -> Numbers:
    floored: Numbers = values - values % unit
    return floored


def _days(datum: Datum) -> Array:
    return cast(arrays.broadcast_all([datum])[0], pa.date32())


def _moments(datum: Datum) -> Array:
    """As timestamps without a zone, whose fields Arrow reads without a time zone database."""
    return cast(arrays.broadcast_all([datum])[0], _NAIVE)


def _days_or_moments(datum: Datum) -> Array:
    return arrays.broadcast_all([datum])[0] if pa.types.is_date32(datum.type) else _moments(datum)
