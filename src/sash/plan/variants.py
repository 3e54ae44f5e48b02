"""VARIANT values: JSON with types, stored as text that keeps them.

A whole number is a BIGINT, or a DECIMAL if it is larger; a number with a point a DECIMAL, unless it has too many digits; one
with an exponent a DOUBLE. In the text a DECIMAL has a point, a DOUBLE an exponent, and the fields of objects are sorted.
Values of types that JSON lacks are an `@`, the letter of their type (`LETTERS`) and the value: `@d19723` is a DATE.
"""

from __future__ import annotations

import base64
import math
import re
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from sash.plan.java_numbers import double_text, float_text
from sash.plan.json_reader import JsonError, JsonNumber, JsonObject, TypedScalar, quoted_json, read_json, write_json
from sash.plan.types import NAMES
from sash.plan.variant_binary import decode_variant, encode_variant
from sash.plan.variant_numbers import scalar_of

_DIGITS = 38
_PART = re.compile(r"\.([^.\[\]'\"]+)|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[([0-9]+)\]")
_NAME = re.compile(r"[A-Za-z_]\w*")
Scalar = str | bool | int | float | Decimal
LETTERS = {
    "d": pa.date32(),
    "t": pa.timestamp("us", tz="UTC"),
    "n": pa.timestamp("us"),
    "f": pa.float32(),
    "e": pa.float64(),
    "b": pa.binary(),
}
"""The types that JSON lacks by their letters; `e` is a DOUBLE that is not finite, and `u` a UUID, which no column has."""
_TIMES = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP")


def sort_key(name: str) -> bytes:
    """The order of the fields of an object."""
    return name.encode("utf-16-be")


def read_stored(stored: str) -> Any:
    """The value of a stored variant."""
    return read_json(stored, typed=True)


def write_stored(value: Any) -> str:
    """The stored form of a value whose objects have sorted fields."""
    return write_json(value, _stored_number)


def from_binary(value: bytes, metadata: bytes) -> str:
    """The stored form of a variant that Spark, Parquet or Iceberg encoded."""
    return write_stored(decode_variant(value, metadata))


def to_binary(stored: str) -> tuple[bytes, bytes]:
    """The value and the metadata of a stored variant, as Spark encodes it."""
    return encode_variant(read_stored(stored))


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
            part.pairs.sort(key=lambda pair: sort_key(pair[0]))
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


def variant_json(stored: str) -> str:
    """The variant as JSON, as Spark writes it."""

    def number(text: str) -> str:
        value = scalar_of(JsonNumber(text, whole=False))
        return double_text(text) if isinstance(value, float) else format(value, "f")

    return write_json(read_stored(stored), number, typed=_typed_json)


def _typed_json(value: TypedScalar) -> str:
    if value.kind in "ef":
        return typed_text(value)
    if value.kind == "b":
        return quoted_json(value.text)
    return quoted_json(typed_text(value) + ("+00:00" if value.kind == "t" else ""))


def typed_text(value: TypedScalar) -> str:
    """A value of a type that JSON lacks as text."""
    match value.kind:
        case "e":
            return double_text(value.text)
        case "f":
            return float_text(value.text)
        case "b":
            return base64.b64decode(value.text).decode("utf-8", "replace")
        case "u":
            return str(uuid.UUID(hex=value.text))
        case "d":
            return _signed_year(str(np.datetime64(int(value.text), "D")))
    return _signed_year(str(np.datetime64(int(value.text), "us")).replace("T", " ")).rstrip("0").rstrip(".")


def _signed_year(moment: str) -> str:
    """A date or time as Java writes it, with a sign before years of more than four digits."""
    return moment if moment.startswith("-") or moment.index("-") <= 4 else f"+{moment}"


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
    value = read_stored(stored)
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
    return write_stored(value)


def variant_schema(stored: str) -> str:
    """The type of a variant, as SCHEMA_OF_VARIANT writes it."""
    return written_type(type_in(stored))


def type_in(stored: str) -> Any:
    """The type of a variant: a name, a DECIMAL as its digits, a list as a list, an object as a dict."""
    return _type(read_stored(stored))


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
        case TypedScalar():
            return "UUID" if value.kind == "u" else NAMES[LETTERS[value.kind]]
        case list():
            found: Any = "VOID"
            for each in value:
                found = merged(found, _type(each))
            return [found]
        case JsonObject():
            return {name: _type(each) for name, each in value.pairs}
        case _:
            raise TypeError(f"no JSON value: {value!r}")


def merged(left: Any, right: Any) -> Any:
    """The type of a list that has elements of both types."""
    if right in (left, "VOID"):
        return left
    if left == "VOID":
        return right
    if isinstance(left, list) and isinstance(right, list):
        return [merged(left[0], right[0])]
    if isinstance(left, dict) and isinstance(right, dict):
        names = sorted({**left, **right}, key=sort_key)
        return {name: merged(left.get(name, "VOID"), right.get(name, "VOID")) for name in names}
    numbers = [("DECIMAL", 20, 0) if each == "BIGINT" else each for each in (left, right)]
    if all(each in _TIMES for each in numbers):
        return max(numbers, key=_TIMES.index)
    if "FLOAT" in (left, right) and "BIGINT" in (left, right):
        return "FLOAT"
    if all(isinstance(each, tuple) or each in ("FLOAT", "DOUBLE") for each in numbers):
        if "DOUBLE" in numbers or "FLOAT" in numbers:
            return "DOUBLE"
        scale = max(each[2] for each in numbers)
        whole = max(each[1] - each[2] for each in numbers)
        return "DECIMAL", min(_DIGITS, whole + scale), min(_DIGITS, scale)
    return "VARIANT"


def written_type(dtype: Any) -> str:
    """The name of such a type."""
    match dtype:
        case str():
            return dtype
        case tuple():
            return f"DECIMAL({dtype[1]},{dtype[2]})"
        case list():
            return f"ARRAY<{written_type(dtype[0])}>"
        case _:
            fields = (f"{_quoted(name)}: {written_type(inner)}" for name, inner in dtype.items())
            return f"OBJECT<{', '.join(fields)}>"


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
