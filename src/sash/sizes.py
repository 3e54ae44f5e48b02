"""Parses sizes such as "512 KB", "64 MB" and "1.5 GB", and prints them."""

from __future__ import annotations

import re

from sash.arguments import check_text, shown
from sash.errors import OptionError

_UNITS = {"b": 0, "byte": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4}
"""The power of 1,024 of each unit, as in the settings of Spark and PostgreSQL."""

_LARGEST = 2**60


def byte_count(text: str, what: str) -> int:
    """The size in bytes, greater than 0; `what` names it in the error.

    >>> byte_count("1.5 GB", "max_state")
    1610612736
    """
    found = re.fullmatch(r"\s*([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*([a-z]+)\s*", check_text(what, text).lower())
    unit = "" if found is None else found[2].replace("ib", "b")
    power = _UNITS.get(unit, _UNITS.get(unit.removesuffix("s")))
    if found is None or power is None:
        raise OptionError(f'{what} must be a size such as "64 MB" or "1 GB", not {shown(text)}')
    size = round(float(found[1]) * 1024**power)
    if not 0 < size <= _LARGEST:
        raise OptionError(f"{what} must be greater than 0 and at most 1 million TB, not {shown(text)}")
    return size


def size_text(size: float) -> str:
    """A number of bytes as people read it.

    >>> size_text(1610612736), size_text(17)
    ('1.5 GB', '17 B')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            break
        size /= 1024
    else:
        unit = "TB"
    return f"{size:,.0f} {unit}" if size >= 100 else f"{size:.3g} {unit}"
