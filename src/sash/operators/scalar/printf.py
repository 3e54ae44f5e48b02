"""FORMAT_STRING: the conversions of Java's Formatter, for text, numbers and booleans."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar.arrays import LONGEST_TEXT, Array, Datum, map_rows
from sash.operators.scalar.function import MANY, Function
from sash.plan.java_numbers import java_number

_DIRECTIVE = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(<]*)([1-9]\d*)?(?:\.(\d+))?([a-zA-Z%])")
_EXACT = Context(prec=1200, rounding=ROUND_HALF_UP)
_INTEGERS, _FLOATS = "dox", "feg"
_ALLOWED = {
    "d": "-+ 0,(",
    "o": "-#0",
    "x": "-#0",
    "f": "-#+ 0,(",
    "e": "-#+ 0(",
    "g": "-+ 0,(",
    "s": "-",
    "b": "-",
    "c": "-",
}


@dataclass(frozen=True)
class _Directive:
    """One conversion: `index` is the number of its argument, from 0."""

    conversion: str
    index: int
    flags: str
    width: int
    precision: int | None
    text: str
    upper: bool


@lru_cache(maxsize=256)
def _parsed(pattern: str) -> tuple[str | _Directive, ...]:
    """The plain parts of a format and its conversions."""
    parts: list[str | _Directive] = []
    position, ordinary, last = 0, 0, -1
    while position < len(pattern):
        percent = pattern.find("%", position)
        if percent < 0:
            percent = len(pattern)
        if percent > position:
            parts.append(pattern[position:percent])
        if percent == len(pattern):
            break
        found = _DIRECTIVE.match(pattern, percent)
        if found is None:
            raise _error(pattern, f"'{pattern[percent : percent + 4]}' is not a conversion")
        position = found.end()
        number, flags, width, precision, conversion = found.groups()
        simple = _simple(pattern, conversion, flags, int(width or 0))
        if simple is not None:
            parts.append(simple)
            continue
        if "<" in flags:
            index = last
        elif number is not None:
            index = int(number) - 1
        else:
            index, ordinary = ordinary, ordinary + 1
        last = index
        directive = _Directive(
            conversion.lower(), index, flags.replace("<", ""), int(width or 0), None if precision is None else int(precision),
            found[0], conversion.isupper()
        )  # fmt: skip
        parts.append(_checked(pattern, directive, conversion))
    return tuple(parts)


def _simple(pattern: str, conversion: str, flags: str, width: int) -> str | None:
    """The text of %n and %%; None for other conversions."""
    if conversion == "n":
        if flags or width:
            raise _error(pattern, "%n has neither flags nor a width")
        return "\n"
    if conversion == "%":
        if flags.strip("-") or ("-" in flags and not width):
            raise _error(pattern, "%% has no such flags")
        return _justified("%", "-" in flags, width)
    return None


def _checked(pattern: str, directive: _Directive, conversion: str) -> _Directive:
    kind, flags = directive.conversion, directive.flags
    if kind not in _ALLOWED or (directive.upper and kind not in "sbcxeg"):
        raise _error(pattern, f"Sash does not know the conversion %{conversion}")
    if directive.index < 0:
        raise _error(pattern, f"{directive.text} has no argument")
    if set(flags) - set(_ALLOWED[kind]) or len(set(flags)) < len(flags):
        raise _error(pattern, f"{directive.text} has flags that it does not take")
    if ("-" in flags or "0" in flags) and not directive.width:
        raise _error(pattern, f"{directive.text} needs a width")
    if ("-" in flags and "0" in flags) or ("+" in flags and " " in flags):
        raise _error(pattern, f"{directive.text} has flags that exclude each other")
    if directive.precision is not None and kind in _INTEGERS + "c":
        raise _error(pattern, f"{directive.text} takes no precision")
    if max(directive.width, directive.precision or 0) > LONGEST_TEXT:
        raise _error(pattern, "the result is too long")
    return directive


def _error(pattern: str, problem: str) -> EvaluationError:
    return EvaluationError(f"format_string '{excerpt(pattern)}': {problem}")


def format_string(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The format with each conversion replaced by an argument; only a NULL format gives NULL."""
    kinds = [argument.type for argument in arguments[1:]]

    def run(pattern: str | None, *values: Any) -> str | None:
        if pattern is None:
            return None
        text = []
        for part in _parsed(pattern):
            if isinstance(part, str):
                text.append(part)
            elif part.index >= len(values):
                raise _error(pattern, f"{part.text} has no argument")
            else:
                text.append(_converted(pattern, part, values[part.index], kinds[part.index]))
        return "".join(text)

    return map_rows(run, arguments, dtype, nulls=True)


def _converted(pattern: str, directive: _Directive, value: Any, dtype: pa.DataType) -> str:
    kind = directive.conversion
    if kind == "b":
        text = str(value if isinstance(value, bool) else value is not None).lower()
        text = text[: directive.precision]
    elif value is None:
        text = "null"[: directive.precision]
    elif kind == "s":
        text = _cut(_as_text(value, dtype), directive.precision)
    elif kind == "c" and pa.types.is_integer(dtype) and dtype.bit_width <= 32:
        if not 0 <= value <= 0x10FFFF:
            raise _error(pattern, f"{value} is not the number of a character")
        text = chr(value)
    elif kind in _INTEGERS and pa.types.is_integer(dtype):
        text = _decimal_integer(directive, value) if kind == "d" else _unsigned_integer(directive, value, dtype)
    elif kind in _FLOATS and pa.types.is_floating(dtype):
        text = _floating(directive, value, dtype)
    else:
        raise _error(pattern, f"{directive.text} does not take an argument of this type")
    text = _justified(text, "-" in directive.flags, directive.width)
    return text.upper() if directive.upper else text


def _as_text(value: Any, dtype: pa.DataType) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return java_number(value, str(np.float32(value)) if pa.types.is_float32(dtype) else repr(value))
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _decimal_integer(directive: _Directive, value: int) -> str:
    return _signed(directive, value < 0, _grouped(directive, str(abs(value))))


def _unsigned_integer(directive: _Directive, value: int, dtype: pa.DataType) -> str:
    digits = format(value % (1 << dtype.bit_width), directive.conversion)
    prefix = {"x": "0x", "o": "0"}[directive.conversion] if "#" in directive.flags else ""
    return prefix + digits.rjust(directive.width - len(prefix), "0") if "0" in directive.flags else prefix + digits


def _grouped(directive: _Directive, digits: str) -> str:
    if "," not in directive.flags:
        return digits
    whole, point, fraction = digits.partition(".")
    return f"{int(whole):,}{point}{fraction}"


def _signed(directive: _Directive, negative: bool, digits: str, fill: bool = True) -> str:
    flags = directive.flags
    before, after = "+" if "+" in flags else " " if " " in flags else "", ""
    if negative:
        before, after = ("(", ")") if "(" in flags else ("-", "")
    if "0" in flags and fill:
        digits = digits.rjust(directive.width - len(before) - len(after), "0")
    return before + digits + after


def _floating(directive: _Directive, value: float, dtype: pa.DataType) -> str:
    negative = math.copysign(1.0, value) < 0
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return _signed(directive, negative, "Infinity", fill=False)
    number = Decimal(str(np.float32(value)) if pa.types.is_float32(dtype) else repr(value)).copy_abs()
    precision, kind = 6 if directive.precision is None else directive.precision, directive.conversion
    if kind == "g":
        precision = precision or 1
        rounded = number if number == 0 else _EXACT.plus(Context(prec=precision, rounding=ROUND_HALF_UP).plus(number))
        if rounded == 0 or Decimal("0.0001") <= rounded < Decimal(10) ** precision:
            kind, precision = "f", precision - (1 if rounded == 0 else rounded.adjusted() + 1)
        else:
            kind, precision = "e", precision - 1
    if kind == "f":
        digits = format(_EXACT.quantize(number, Decimal(1).scaleb(-precision)), "f")
    else:
        digits = _scientific(number, precision)
    if "#" in directive.flags and precision == 0:
        digits = digits.replace("e", ".e") if "e" in digits else digits + "."
    return _signed(directive, negative, _grouped(directive, digits))


def _scientific(number: Decimal, precision: int) -> str:
    exponent = number.adjusted() if number else 0
    mantissa = _EXACT.quantize(number.scaleb(-exponent, _EXACT), Decimal(1).scaleb(-precision))
    if mantissa >= 10:
        exponent, mantissa = exponent + 1, _EXACT.quantize(mantissa / 10, Decimal(1).scaleb(-precision))
    return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _cut(text: str, length: int | None) -> str:
    """The first characters, which Java counts in units of UTF-16."""
    if length is None or text.isascii():
        return text[:length]
    return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "replace")


def _justified(text: str, left: bool, width: int) -> str:
    wide = sum(ord(character) > 0xFFFF for character in text)
    return text.ljust(width - wide) if left else text.rjust(width - wide)


FUNCTIONS = {"format_string": Function(format_string, 1, MANY, strict=False, fails=True)}
