"""Parses lengths of time such as "500 milliseconds", "1 minute" and "2 hours"."""

from __future__ import annotations

import re

from sash.arguments import check_text, shown
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


LONGEST = 10_000 * 365 * DAY
"""The longest length of time, which may be added to any instant of the calendar without overflow."""


def microseconds(text: str, what: str) -> int:
    """The length in microseconds; `what` names it in the error.

    >>> microseconds("1.5 seconds", "slack")
    1500000
    """
    found = re.fullmatch(r"\s*([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*([a-z]+)\s*", check_text(what, text).lower())
    unit = "" if found is None else found[2]
    scale = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"))
    if found is None or scale is None:
        raise OptionError(
            f'{what} must be a length of time such as "500 milliseconds" or "1 minute", not {shown(text)}'
        )
    length = round(float(found[1]) * scale)
    if length > LONGEST:
        raise OptionError(f"{what} must be shorter than 10,000 years, not {shown(text)}")
    return length
