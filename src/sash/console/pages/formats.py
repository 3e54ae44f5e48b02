"""How the console writes numbers, sizes, durations and instants. Instants are microseconds since 1970, in UTC."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from sash.sizes import size_text

NONE = "\N{EN DASH}"
_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SECOND = 1_000_000
_HIDDEN = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"}
_HIDDEN |= {127: chr(0x2421)} | {code: f"<U+{code:04X}>" for code in _MARKS}


def visible(text: str) -> str:
    r"""Return a text with control characters, and marks that turn the direction of writing, as characters that are seen.

    >>> visible("a\0b"), visible("\u202etxt.exe")
    ('a␀b', '<U+202E>txt.exe')
    """
    return text.translate(_HIDDEN)


def count(value: float | None) -> str:
    """Return a number of rows: all digits up to 99,999, then three of them.

    >>> count(1234), count(1_234_567), count(0)
    ('1,234', '1.23 M', '0')
    """
    if value is None:
        return NONE
    if abs(value) < 100_000:
        return f"{round(value):,}"
    for factor, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{_three(value / factor)} {name}"
    return f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Return rows per second.

    >>> rate(1234.5), rate(0.25), rate(0.002)
    ('1,234/s', '0.25/s', '<0.01/s')
    """
    if value is None:
        return NONE
    if 0 < value < 0.01:
        return "<0.01/s"
    return f"{_three(value) if 0 < abs(value) < 100 else count(value)}/s"


def size(value: float | None) -> str:
    """Return a number of bytes, as elsewhere in Sash."""
    return NONE if value is None else size_text(round(value))


def seconds(value: float | None) -> str:
    """Return a duration.

    >>> seconds(0.0421), seconds(3.5), seconds(75), seconds(7260), seconds(200_000), seconds(0.0002)
    ('42 ms', '3.5 s', '1 min 15 s', '2 h 1 min', '2 d 7 h', '<1 ms')
    """
    if value is None:
        return NONE
    if value < 0:
        return f"-{seconds(-value)}"
    if value < 1:
        return "<1 ms" if 0 < value < 0.0005 else f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{_three(value)} s"
    whole = round(value)
    for unit, name, below, lesser in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            rest = whole % unit // below
            return f"{whole // unit} {name}" + (f" {rest} {lesser}" if rest else "")
    return NONE


def milliseconds(value: float | None) -> str:
    """Return a duration that is given in milliseconds."""
    return NONE if value is None else seconds(value / 1000)


def instant(value: int | None, *, date: bool = True) -> str:
    """Return an instant to the millisecond, or to the microsecond if it has them.

    >>> instant(1_600_000_000_250_000)
    '2020-09-13 12:26:40.250'
    >>> instant(1_600_000_000_000_000, date=False)
    '12:26:40'
    """
    if value is None:
        return NONE
    try:
        at = datetime.fromtimestamp(value // _SECOND, UTC)
    except (ValueError, OverflowError, OSError):
        return NONE
    rest = value % _SECOND
    fraction = "" if not rest else f".{rest // 1000:03d}" if rest % 1000 == 0 else f".{rest:06d}"
    text = at.replace(tzinfo=None).isoformat(" ", "seconds")
    return (text if date else text.partition(" ")[2]) + fraction


def cell(value: object) -> str:
    """Return a value of an answer.

    >>> [cell(v) for v in (None, True, 3, 2.5, 1 / 3, float("nan"), [1, None])]
    ['NULL', 'true', '3', '2.5', '0.3333333333', 'NaN', '[1, NULL]']
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return _real(value)
        case list() | tuple():
            return "[" + ", ".join(cell(element) for element in value) + "]"
        case dict():
            return "{" + ", ".join(f"{cell(key)}: {cell(held)}" for key, held in value.items()) + "}"
    return visible(str(value))


def _real(value: float) -> str:
    if math.isfinite(value):
        return f"{value:.10g}"
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _three(value: float) -> str:
    """Three significant digits, without zeros at the end."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
