"""Parses lengths of time such as "500 milliseconds", "1 minute" and "2 hours"."""

from __future__ import annotations

import re

from sash.errors import OptionError

_UNITS = {
    "us": 1, "microsecond": 1,
    "ms": 1_000, "millisecond": 1_000,
    "s": 1_000_000, "sec": 1_000_000, "second": 1_000_000,
    "m": 60_000_000, "min": 60_000_000, "minute": 60_000_000,
    "h": 3_600_000_000, "hour": 3_600_000_000,
    "d": 86_400_000_000, "day": 86_400_000_000,
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
