"""Intervals as text, in Spark's notation: `INTERVAL '1 02:03:04.5' DAY TO SECOND`."""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa

from sash.plan.sql_types import INTERVALS, DayTimeInterval, YearMonthInterval
from sash.time import DAY, HOUR, MINUTE, SECOND

INTERVAL_LIMITS = {pa.int64(): 2**63, pa.int32(): 2**31}
"""The first number that is too large for an interval that is stored in a type."""
_UNITS = (DAY, HOUR, MINUTE, SECOND)
_MOST = (24, 60, 60)
_DIGITS = (9, 10, 12, 13)
"""The most digits of a first field that is days, hours, minutes or seconds."""
_SEPARATORS = (" ", ":", ":")
_SIGN = "(?P<{}>[+-])?"


def text_of(value: int, name: str) -> str:
    """A stored interval of a type as Spark writes it.

    >>> text_of(-93_784_500_000, "INTERVAL DAY TO SECOND")
    "INTERVAL '-1 02:03:04.5' DAY TO SECOND"
    """
    dtype = INTERVALS[name]
    body = _months(abs(value), dtype) if isinstance(dtype, YearMonthInterval) else _micros(abs(value), dtype)
    return f"INTERVAL '{'-' if value < 0 else ''}{body}' {name.removeprefix('INTERVAL ')}"


def _months(months: int, dtype: YearMonthInterval) -> str:
    first, last = dtype.fields
    if first == last:
        return str(months // 12 if first == 0 else months)
    return f"{months // 12}-{months % 12}"


def _micros(micros: int, dtype: pa.DataType) -> str:
    assert isinstance(dtype, DayTimeInterval)
    first, last = dtype.fields
    made = ""
    for place in range(first, last + 1):
        count, micros = divmod(micros, _UNITS[place])
        made += str(count) if place == 0 else f"{count:02}"
        made += _SEPARATORS[place] if place < last else ""
    return f"{made}.{micros:06}".rstrip("0") if last == 3 and micros else made


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """The notation of an interval, alone or as in a literal."""
    dtype = INTERVALS[name]
    assert isinstance(dtype, DayTimeInterval | YearMonthInterval)
    first, last = dtype.fields
    if isinstance(dtype, YearMonthInterval):
        body = r"(?P<f0>\d{1,9})-(?P<f1>\d{1,2})" if first < last else rf"(?P<f{first}>\d{{1,9}})"
    else:
        body = ""
        for place in range(first, last + 1):
            body += rf"(?P<f{place}>\d{{1,{_DIGITS[place] if place == first else 2}}})"
            body += _SEPARATORS[place] if place < last else ""
        body += r"(?P<fraction>\.\d{1,9})?" if last == 3 else ""
    quoted = body.replace("?P<f", "?P<q")
    words = r"\s+".join(name.split()[1:])
    whole = rf"interval\s+{_SIGN.format('outer')}'{_SIGN.format('inner')}{quoted}'\s+{words}"
    return re.compile(rf"\s*(?:{_SIGN.format('sign')}{body}|{whole})\s*", re.IGNORECASE | re.ASCII)


def parsed(text: str, name: str) -> int | None:
    """The stored interval that a text denotes; None if it denotes none of the type.

    >>> parsed("1-2", "INTERVAL YEAR TO MONTH"), parsed("interval '90' second", "INTERVAL SECOND")
    (14, 90000000)
    """
    found = _pattern(name).fullmatch(text)
    if found is None:
        return None
    part = {
        key.replace("q", "f", 1) if key[0] == "q" else key: value for key, value in found.groupdict().items() if value
    }
    dtype = INTERVALS[name]
    if isinstance(dtype, YearMonthInterval):
        months = int(part.get("f1", 0))
        if "f0" in part and months > 11:
            return None
        total = 12 * int(part.get("f0", 0)) + months
    else:
        assert isinstance(dtype, DayTimeInterval)
        first, _ = dtype.fields
        total = 0
        for place, unit in enumerate(_UNITS):
            count = int(part.get(f"f{place}", 0))
            if place > first and count >= _MOST[place - 1]:
                return None
            total += count * unit
        total += int(part.get("fraction", ".0")[1:].ljust(9, "0")) // 1000
    negative = sum(part.get(key) == "-" for key in ("sign", "outer", "inner")) % 2
    total = -total if negative else total
    limit = INTERVAL_LIMITS[dtype.storage_type]
    return total if -limit <= total < limit else None
