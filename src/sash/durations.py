"""Parses lengths of time such as "500 milliseconds", "1 minute" and "2 hours"."""

from __future__ import annotations

import re

from sash.errors import OptionError
from sash.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND

_UNITS = {
    "us": MICROSECOND, "microsecond": MICROSECOND,
    "ms": MILLISECOND, "millisecond": MILLISECOND,
    "s": SECOND, "sec": SECOND, "second": SECOND,
    "m": MINUTE, "min": MINUTE, "minute": MINUTE,
    "h": HOUR, "hour": HOUR,
    "d": DAY, "day": DAY,
}  # fmt: skip


def microseconds(text: str, what: str) -> int:
    """The length in microseconds; `what` names it in the error.

    >>> microseconds("1.5 seconds", "slack")
    1500000
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())
    unit = "" if found is None else found[2]
    scale = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
    if found is None or scale is None:
        raise OptionError(f'{what} must be a length of time such as "500 milliseconds" or "1 minute", not {text!r}')
    return round(float(found[1]) * scale)
