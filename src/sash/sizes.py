"""Sizes in bytes, written as numbers with units."""

from __future__ import annotations

import re

from sash.arguments import shown
from sash.errors import OptionError

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_MOST = 1e15
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", re.IGNORECASE)


def size_in_bytes(size: object, what: str) -> int:
    """The number of bytes of a size such as "64 MB", or of a number.

    >>> size_in_bytes("1.5 KB", "outbox"), size_in_bytes(100, "outbox"), size_in_bytes("2g", "outbox")
    (1536, 100, 2147483648)
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    unit = "" if found is None else found[2].upper().replace("I", "")
    unit = f"{unit}B" if unit and not unit.endswith("B") else unit
    if found is None or unit not in _UNITS or not 0 < float(found[1]) < _MOST:
        raise OptionError(f'{what} must be a size such as "64 MB" or "1 GB", not {shown(size)}')
    return int(float(found[1]) * _UNITS[unit])


def size_text(size: int) -> str:
    """A number of bytes for people.

    >>> size_text(999), size_text(5 << 20)
    ('999 B', '5.0 MB')
    """
    value, unit = float(size), "B"
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1024 or unit == "TB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
