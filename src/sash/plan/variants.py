"""VARIANT values: JSON with types, stored as text that keeps them.

A whole number is a BIGINT, or a DECIMAL if it is larger; a number with a point a DECIMAL, unless it has too many digits; one
with an exponent a DOUBLE. In the text a DECIMAL has a point, a DOUBLE an exponent, and the fields of objects are sorted.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from sash.plan.java_numbers import double_text
from sash.plan.json_reader import JsonError, JsonNumber, JsonObject, read_json, write_json

_DIGITS = 38
_PART = re.compile(r"\.([^.\[\]'\"]+)|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[([0-9]+)\]")
_NAME = re.compile(r"[A-Za-z_]\w*")
Scalar = str | bool | int | float | Decimal


def stored_variant(text: str) -> str:
    """The stored form of the first JSON value in a text; JsonError if there is none, or if an object has a field twice.

    >>> stored_variant('{"b": 1.50, "a": [1e2, 3]}')
    '{"a":[100.0e0,3],"b":1.5}'
    """
    return write_json(_sorted(read_json(text, plain=True)), _stored_number, _DIGITS)


def _sorted(value: Any) -> Any:
    """The value with sorted fields, without recursion."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, JsonObject):
            if len({name for name, _ in part.pairs}) < len(part.pairs):
                raise JsonError
            part.pairs.sort(key=lambda pair: pair[0].encode("utf-16-be"))
            pending.extend(each for _, each in part.pairs)
        elif isinstance(part, list):
            pending.extend(part)
    return value


def _stored_number(text: str) -> str:
    number = scalar_of(JsonNumber(text, whole=False))
    if isinstance(number, Decimal):
        plain = format(number, "f")
        return plain if "." in plain else f"{plain}.0"
    assert isinstance(number, float)
    if not math.isfinite(number):
        raise JsonError
    written = repr(number)
    return written if "e" in written else f"{written}e0"


def scalar_of(number: JsonNumber) -> int | Decimal | float:
    """The number with its type."""
    if number.whole and -(2**63) <= int(number.text) < 2**63:
        return int(number.text)
    if "e" not in number.text.lower():
        sign, digits, exponent = Decimal(number.text).as_tuple()
        assert isinstance(exponent, int)
        if len(digits) <= _DIGITS and -exponent <= _DIGITS:
            return _stripped(Decimal((sign, digits, exponent)))
    return float(number.text)


def _stripped(number: Decimal) -> Decimal:
    """The number without zeros at the end of its fraction."""
    if number == 0:
        return Decimal(0)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    while exponent < 0 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    return Decimal((sign, digits, exponent))


def variant_json(stored: str) -> str:
    """The variant as JSON, as Spark writes it."""

    def number(text: str) -> str:
        value = scalar_of(JsonNumber(text, whole=False))
        return double_text(text) if isinstance(value, float) else format(value, "f")

    return write_json(read_json(stored), number)


def variant_path(text: str) -> tuple[str | int, ...] | None:
    """The names and positions of a path such as `$.a[0]['b c']`; None if it is no path."""
    if not text.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = _PART.match(text, at)
        if found is None:
            return None
        at = found.end()
        name = next((part for part in (found[1], found[2], found[3]) if part is not None), None)
        steps.append(int(found[4]) if name is None else name)
    return tuple(steps)


def variant_at(stored: str, path: tuple[str | int, ...]) -> str | None:
    """The stored form of what is on a path; None if there is nothing."""
    value = read_json(stored)
    for step in path:
        if isinstance(value, JsonObject) and isinstance(step, str):
            found = [each for name, each in value.pairs if name == step]
        elif isinstance(value, list) and isinstance(step, int):
            found = value[step : step + 1]
        else:
            return None
        if not found:
            return None
        value = found[0]
    return write_json(value, _stored_number)


def variant_schema(stored: str) -> str:
    """The type of a variant, as SCHEMA_OF_VARIANT writes it."""
    return _written(_type(read_json(stored)))


def _type(value: Any) -> Any:
    match value:
        case None:
            return "VOID"
        case bool():
            return "BOOLEAN"
        case str():
            return "STRING"
        case JsonNumber():
            number = scalar_of(value)
            if isinstance(number, Decimal):
                _, digits, exponent = number.as_tuple()
                scale = max(0, -int(exponent))
                return "DECIMAL", max(len(digits) - scale, 0) + scale if number else 1, scale
            return "BIGINT" if isinstance(number, int) else "DOUBLE"
        case list():
            merged: Any = "VOID"
            for each in value:
                merged = _merged(merged, _type(each))
            return [merged]
        case JsonObject():
            return {name: _type(each) for name, each in value.pairs}
        case _:
            raise TypeError(f"no JSON value: {value!r}")


def _merged(left: Any, right: Any) -> Any:
    if right in (left, "VOID"):
        return left
    if left == "VOID":
        return right
    if isinstance(left, list) and isinstance(right, list):
        return [_merged(left[0], right[0])]
    if isinstance(left, dict) and isinstance(right, dict):
        names = sorted({**left, **right}, key=lambda name: name.encode("utf-16-be"))
        return {name: _merged(left.get(name, "VOID"), right.get(name, "VOID")) for name in names}
    numbers = [("DECIMAL", 20, 0) if each == "BIGINT" else each for each in (left, right)]
    if all(isinstance(each, tuple) or each == "DOUBLE" for each in numbers):
        if "DOUBLE" in numbers:
            return "DOUBLE"
        scale = max(each[2] for each in numbers)
        whole = max(each[1] - each[2] for each in numbers)
        return "DECIMAL", min(_DIGITS, whole + scale), min(_DIGITS, scale)
    return "VARIANT"


def _written(dtype: Any) -> str:
    match dtype:
        case str():
            return dtype
        case tuple():
            return f"DECIMAL({dtype[1]},{dtype[2]})"
        case list():
            return f"ARRAY<{_written(dtype[0])}>"
        case _:
            fields = (f"{_quoted(name)}: {_written(inner)}" for name, inner in dtype.items())
            return f"OBJECT<{', '.join(fields)}>"


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
