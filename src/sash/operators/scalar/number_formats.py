"""FORMAT_NUMBER by patterns of Java's DecimalFormat, TO_NUMBER and TO_CHAR by Spark's number formats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum
from sash.operators.scalar.function import Function

_EXACT = Context(prec=1200, rounding=ROUND_HALF_EVEN)
_PATTERN = re.compile(r"(?P<whole>(?:#|,)*[0,]*)(?:\.(?P<fraction>0*#*))?")
_MOST_DIGITS = 300


def _format_number(value: Any, format_: int | str) -> str | None:
    """A number with separators: a number of decimals, or a pattern; rounded half even."""
    if isinstance(format_, int):
        if format_ < 0:
            return None
        return _laid_out(value, 3, 1, min(format_, _MOST_DIGITS), min(format_, _MOST_DIGITS))
    found = _PATTERN.fullmatch(format_)
    if found is None or not format_ or not found["whole"].strip(","):
        raise EvaluationError(f"format_number: Sash knows patterns such as '#,##0.00', not '{excerpt(format_)}'")
    whole, fraction = found["whole"], found["fraction"] or ""
    grouping = len(whole) - whole.rfind(",") - 1 if "," in whole else 0
    least = whole.count("0")
    if least == 0 and not (fraction and "0" in fraction):
        least = 1 if fraction else 0
    if least == 0 and not fraction:
        least = 1
    return _laid_out(value, grouping, least, fraction.count("0"), len(fraction))


def _laid_out(value: Any, grouping: int, whole: int, least: int, most: int) -> str:
    negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("-∞" if negative else "∞")
    rounded = Decimal(value).copy_abs().quantize(Decimal(1).scaleb(-most), context=_EXACT)
    digits, _, fraction = format(rounded, "f").partition(".")
    digits = digits.lstrip("0").rjust(whole, "0")
    fraction = fraction[:least] + fraction[least:].rstrip("0")
    if grouping:
        groups = [digits[max(end - grouping, 0) : end] for end in range(len(digits), 0, -grouping)]
        digits = ",".join(reversed(groups))
    return ("-" if negative else "") + digits + (f".{fraction}" if fraction else "")


@dataclass(frozen=True)
class _Format:
    """A format of TO_NUMBER: the text before the digits, groups of digits before and after the point, the text after."""

    before: tuple[str, ...]
    groups: tuple[str, ...]
    point: str
    fraction: str
    after: tuple[str, ...]
    brackets: bool


_NUMBER_FORMAT = re.compile(r"(S|MI)?(\$)?([09][09,]*|(?=\.))(?:(\.)([09]*))?(\$)?(S|MI|PR)?")


@lru_cache(maxsize=256)
def number_format(text: str) -> _Format:
    """The parts of a format; EvaluationError if it is none."""
    found = _NUMBER_FORMAT.fullmatch(text.upper().replace("G", ",").replace("D", "."))
    if (
        found is None
        or (found[1] and found[7])
        or (found[2] and found[6])
        or ",," in found[3]
        or found[3].endswith(",")
    ):
        raise EvaluationError(f"'{excerpt(text)}' is not a format of numbers: write one such as 'S999,999.99'")
    sign, dollar, whole, point, fraction, dollar_after, sign_after = found.groups()
    if not whole and not fraction:
        raise EvaluationError(f"'{excerpt(text)}' is not a format of numbers: it has no digits")
    after = tuple(part for part in (dollar_after, sign_after if sign_after != "PR" else None) if part)
    before = tuple(part for part in (sign, dollar) if part)
    return _Format(
        before, tuple(whole.split(",")) if whole else (), point or "", fraction or "", after, sign_after == "PR"
    )


def _to_number(text: str, format_: str) -> Decimal | None:
    """The number in the text; None if the text is not of the format."""
    layout = number_format(format_)
    rest, negative = text.strip(" "), False
    if layout.brackets:
        if not (rest.startswith("<") and rest.endswith(">")):
            return None
        rest, negative = rest[1:-1], True
    for part in layout.before:
        if part == "$":
            if not rest.startswith("$"):
                return None
            rest = rest[1:]
        elif rest[:1] == "-" or (rest[:1] == "+" and part == "S"):
            negative, rest = rest[0] == "-", rest[1:]
    for part in reversed(layout.after):
        if part == "$":
            if not rest.endswith("$"):
                return None
            rest = rest[:-1]
        elif rest[-1:] == "-" or (rest[-1:] == "+" and part == "S"):
            negative, rest = rest[-1] == "-", rest[:-1]
    digits, point, fraction = rest.partition(".")
    if (point and not layout.point) or not re.fullmatch(r"[0-9,]*", digits) or not re.fullmatch(r"[0-9]*", fraction):
        return None
    if not _fits(digits, layout) or len(fraction) > len(layout.fraction):
        return None
    number = Decimal(f"{digits.replace(',', '') or '0'}.{fraction or '0'}")
    return -number if negative else number


def _fits(digits: str, layout: _Format) -> bool:
    """Whether the groups of digits fit those of the format, from the right: 0 wants all, 9 at most as many."""
    groups = digits.split(",")
    if len(groups) > max(len(layout.groups), 1) or (digits and not layout.groups):
        return False
    for index, wanted in enumerate(reversed(layout.groups)):
        found = groups[-1 - index] if index < len(groups) else ""
        if len(found) > len(wanted) or (wanted.startswith("0") and len(found) != len(wanted)):
            return False
        if index + 1 < len(groups) and len(found) != len(wanted):
            return False
    return bool(digits) or bool(layout.fraction)


def _to_char(value: Any, format_: str) -> str:
    """The number by the format; signs # if it does not fit."""
    layout = number_format(format_)
    number = Decimal(value)
    negative = number < 0
    whole, _, fraction = format(number.copy_abs(), "f").partition(".")
    room = "".join(layout.groups)
    whole = whole.lstrip("0")
    overflow = len(whole) > len(room) or len(fraction.rstrip("0")) > len(layout.fraction)
    laid_out = _whole(whole, layout, overflow)
    point = "." if layout.point else ""
    tail = "#" * len(layout.fraction) if overflow else fraction[: len(layout.fraction)].ljust(len(layout.fraction), "0")
    body = f"{laid_out}{point}{tail}"
    for part in reversed(layout.before):
        body = f"${body}" if part == "$" else _before_digits(body, _signed(part, negative))
    for part in layout.after:
        body += "$" if part == "$" else _signed(part, negative)
    if layout.brackets:
        body = f"{_before_digits(body, '<')}>" if negative else f"{body}  "
    return body


def _signed(part: str, negative: bool) -> str:
    return "-" if negative else "+" if part == "S" else " "


def _before_digits(body: str, sign: str) -> str:
    """The sign directly before the digits, after the blanks."""
    blanks = len(body) - len(body.lstrip(" "))
    return " " * blanks + sign + body[blanks:]


def _whole(digits: str, layout: _Format, overflow: bool) -> str:
    room = sum(map(len, layout.groups))
    if overflow:
        return ",".join("#" * len(group) for group in layout.groups)
    padded, places = digits.rjust(room), "".join(layout.groups)
    zeros = places.find("0")
    filled = ["0" if character == " " and 0 <= zeros <= index else character for index, character in enumerate(padded)]
    text, position = "", 0
    for number, group in enumerate(layout.groups):
        piece = "".join(filled[position : position + len(group)])
        separator = "," if number else ""
        text += (separator if text.strip() else " " * len(separator)) + piece
        position += len(group)
    if layout.point and text and not text.strip():
        # A number below one has a zero before its point.
        text = text[:-1] + "0"
    return text


def _by_format(function: Callable[..., Any], name: str, lenient: bool = False) -> Function:
    def checked(value: Any, format_: Any) -> Any:
        result = function(value, format_)
        if result is None and not lenient:
            raise EvaluationError(
                f"{name}: '{excerpt(str(value))}' is not of the format '{excerpt(format_)}'; use try_to_number to get NULL instead"
            )
        return result

    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        return arrays.map_rows(checked, arguments, dtype)

    return Function(run, 2, 2, fails=True)


FUNCTIONS: dict[str, Function] = {
    "format_number": _by_format(_format_number, "format_number", lenient=True),
    "to_number": _by_format(_to_number, "to_number"),
    "try_to_number": _by_format(_to_number, "try_to_number", lenient=True),
    "to_char": _by_format(_to_char, "to_char"),
}
