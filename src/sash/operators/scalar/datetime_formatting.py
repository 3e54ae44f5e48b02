"""DATE_FORMAT and FROM_UNIXTIME: each field of a pattern is a column of text, and the columns are joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, Numbers, kernel
from sash.operators.scalar.datetime_patterns import DAYS, MONTHS, Letters, Optional, Part, read_pattern
from sash.operators.scalar.function import Function
from sash.time import DAY, HOUR, MINUTE, SECOND

_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")
_ZONES = {
    **{("z", count): "UTC" for count in (1, 2, 3)}, ("z", 4): "Coordinated Universal Time", ("V", 2): "UTC",
    ("O", 1): "GMT", ("O", 4): "GMT", **{("X", count): "Z" for count in range(1, 6)},
    ("x", 1): "+00", ("x", 2): "+0000", ("x", 3): "+00:00", ("x", 4): "+0000", ("x", 5): "+00:00",
    **{("Z", count): "+0000" for count in (1, 2, 3)}, ("Z", 4): "GMT", ("Z", 5): "Z",
}  # fmt: skip
"""The texts of the session's zone, which is UTC."""


def date_format(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """A timestamp as text by a pattern."""

    def run(values: Array, pattern: str) -> Array:
        return format_moments(values, pattern)

    return arrays.for_each_parameter(run, arrays.broadcast_all(arguments)[0], arguments[1:], dtype)


def from_unixtime(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Seconds since 1970 as text by a pattern."""
    seconds = arrays.broadcast_all(arguments)[0]
    moments = kernel("multiply_checked", seconds, pa.scalar(SECOND)).view(pa.timestamp("us"))
    pattern = arguments[1] if len(arguments) > 1 else pa.scalar(_DEFAULT)
    return date_format([moments, pattern], dtype)


def format_moments(values: Array, pattern: str) -> Array:
    """Timestamps as text."""
    parts = read_pattern(pattern, False)
    fields = _Fields(arrays.numbers(values))
    texts = [_text(part, fields) for part in _flat(parts)]
    if not texts:
        texts = [pa.scalar("")]
    empty = arrays.broadcast(pa.scalar(""), len(values))
    joined = kernel("binary_join_element_wise", empty, *texts, pa.scalar(""))
    return arrays.nullify(joined, kernel("is_null", values))


def _flat(parts: Sequence[Part]) -> list[str | Letters]:
    """Every field of a timestamp is there, so optional sections are written."""
    result: list[str | Letters] = []
    for part in parts:
        result += _flat(part.parts) if isinstance(part, Optional) else [part]
    return result


class _Fields:
    """The fields of timestamps in UTC."""

    def __init__(self, micros: Numbers) -> None:
        days = micros // DAY
        dates = days.astype("M8[D]")
        months = dates.astype("M8[M]")
        self.year: Numbers = months.astype("M8[Y]").astype(np.int64) + 1970
        self.month: Numbers = months.astype(np.int64) % 12 + 1
        self.day: Numbers = (dates - months.astype("M8[D]")).astype(np.int64) + 1
        self.day_of_year: Numbers = (dates - months.astype("M8[Y]").astype("M8[D]")).astype(np.int64) + 1
        self.weekday: Numbers = (days + 3) % 7
        clock = micros - days * DAY
        self.hour: Numbers = clock // HOUR
        self.minute: Numbers = clock // MINUTE % 60
        self.second: Numbers = clock // SECOND % 60
        self.micros: Numbers = clock % SECOND


def _text(part: str | Letters, fields: _Fields) -> Datum:
    if isinstance(part, str):
        return pa.scalar(part)
    letter, count = part.letter, part.count
    if (letter, count) in _ZONES:
        return pa.scalar(_ZONES[letter, count])
    match letter:
        case "y":
            return _years(fields.year, count)
        case "M" | "L":
            return _number(fields.month, count, 12) if count < 3 else _named(fields.month - 1, MONTHS, count)
        case "E":
            return _named(fields.weekday, DAYS, max(count, 3))
        case "Q" | "q":
            quarter = (fields.month + 2) // 3
            if count < 3:
                return _number(quarter, count, 4)
            return _lookup(quarter - 1, _QUARTERS if count == 4 else tuple(f"Q{number}" for number in range(1, 5)))
        case "a":
            return _lookup(fields.hour // 12, ("AM", "PM"))
        case "G":
            names = ("BC", "AD") if count < 4 else ("Before Christ", "Anno Domini")
            return _lookup((fields.year > 0).astype(np.int64), names)
        case "S":
            digits: Array = pa.array(
                [f"{number:06d}".ljust(9, "0")[:count] for number in np.unique(fields.micros).tolist()]
            )
            return digits.take(pa.array(np.searchsorted(np.unique(fields.micros), fields.micros)))
    values, most = {
        "D": (fields.day_of_year, 366),
        "d": (fields.day, 31),
        "F": ((fields.day - 1) % 7 + 1, 7),
        "H": (fields.hour, 23),
        "k": (np.where(fields.hour == 0, 24, fields.hour), 24),
        "K": (fields.hour % 12, 11),
        "h": ((fields.hour + 11) % 12 + 1, 12),
        "m": (fields.minute, 59),
        "s": (fields.second, 59),
    }[letter]
    return _number(values, count, most)


def _number(values: Numbers, count: int, most: int) -> Array:
    return _lookup(values, tuple(f"{number:0{count}d}" for number in range(most + 1)))


def _named(values: Numbers, names: Sequence[str], count: int) -> Array:
    return _lookup(values, tuple(name[:3] if count == 3 else name for name in names))


def _lookup(values: Numbers, texts: Sequence[str]) -> Array:
    found: Array = pa.array(texts, pa.string()).take(pa.array(values))
    return found


def _years(values: Numbers, count: int) -> Array:
    distinct, which = np.unique(values, return_inverse=True)
    return pa.array([_year(year, count) for year in distinct.tolist()], pa.string()).take(pa.array(which.reshape(-1)))


def _year(year: int, count: int) -> str:
    if count == 2:
        return f"{abs(year) % 100:02d}"
    digits = f"{abs(year):0{count}d}"
    if year < 0:
        return f"-{digits}"
    return f"+{digits}" if count >= 4 and len(digits) > count else digits


FUNCTIONS: dict[str, Function] = {
    "date_format": Function(date_format, 2, 2, fails=True),
    "from_unixtime": Function(from_unixtime, 1, 2, fails=True),
}
