"""FROM_JSON and TO_JSON: JSON as values of a type, and values as JSON."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from sash.operators.scalar import arrays
from sash.operators.scalar.arrays import Array, Datum, broadcast_all, kernel, map_distinct, nullify
from sash.operators.scalar.casts import cast
from sash.operators.scalar.datetime_formatting import format_moments
from sash.operators.scalar.function import Function, one
from sash.operators.scalar.json_paths import json_text
from sash.plan.json_reader import JsonError, JsonNumber, JsonObject, quoted_json, read_json
from sash.plan.types import BOOLEAN, DOUBLE, STRING, TIMESTAMP, is_array, is_integer, is_map, is_struct
from sash.state.nested import elements, fields, list_array

_NAMED_DOUBLES = {
    "NaN": "nan", "+INF": "inf", "INF": "inf", "+Infinity": "inf", "Infinity": "inf", "-INF": "-inf", "-Infinity": "-inf",
}  # fmt: skip
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WIDE = Context(prec=2000, rounding=ROUND_HALF_UP)


class _WrongTypeError(ValueError):
    """The value has another type than the schema."""


def from_json(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Values of the type; a text that is no JSON is a struct of NULLs, or NULL."""
    (texts,) = broadcast_all(arguments)
    encoded = texts.dictionary_encode()
    made = [_read(text, dtype) for text in encoded.dictionary.to_pylist()]
    built: Array = pa.array(made, dtype)
    return built.take(encoded.indices)


def _read(text: str, dtype: pa.DataType) -> Any:
    nothing = {field.name: None for field in dtype} if is_struct(dtype) else None
    if not text.strip(" \t\n\r"):
        return None
    try:
        value = read_json(text, strict=True)
        if value is None:
            return nothing
        if is_array(dtype) and is_struct(dtype.value_type) and isinstance(value, JsonObject):
            value = [value]
        return _value(value, dtype)
    except (JsonError, _WrongTypeError):
        return nothing


def _value(value: Any, dtype: pa.DataType) -> Any:
    if value is None:
        return None
    if is_struct(dtype):
        return _struct(value, dtype)
    if is_array(dtype):
        if not isinstance(value, list):
            raise _WrongTypeError
        return [_value(each, dtype.value_type) for each in value]
    if is_map(dtype):
        if not isinstance(value, JsonObject):
            raise _WrongTypeError
        return [(name, _value(each, dtype.item_type)) for name, each in value.pairs]
    if dtype == STRING:
        return value if isinstance(value, str) else json_text(value)
    if dtype == BOOLEAN and isinstance(value, bool):
        return value
    if dtype == DOUBLE:
        return _double(value)
    if is_integer(dtype) and isinstance(value, JsonNumber) and value.whole:
        low, high = arrays.limits(dtype)
        if low <= int(value.text) <= high:
            return int(value.text)
    if pa.types.is_decimal(dtype):
        return _decimal(value, dtype)
    raise _WrongTypeError


def _struct(value: Any, dtype: pa.DataType) -> dict[str, Any]:
    """The fields of an object; those of another type are NULL."""
    if not isinstance(value, JsonObject):
        raise _WrongTypeError
    made: dict[str, Any] = {field.name: None for field in dtype}
    kinds = {field.name: field.type for field in dtype}
    for name, each in value.pairs:
        if name in kinds:
            try:
                made[name] = _value(each, kinds[name])
            except _WrongTypeError:
                made[name] = None
    return made


def _double(value: Any) -> float:
    if isinstance(value, JsonNumber):
        return float(value.text)
    if isinstance(value, str) and value in _NAMED_DOUBLES:
        return float(_NAMED_DOUBLES[value])
    raise _WrongTypeError


def _decimal(value: Any, dtype: pa.DataType) -> Decimal | None:
    text = value.text if isinstance(value, JsonNumber) else value.replace(",", "") if isinstance(value, str) else ""
    if not _DECIMAL.fullmatch(text):
        raise _WrongTypeError
    number = Decimal(text)
    if number.adjusted() > 40:
        return None
    rounded = number.quantize(Decimal(1).scaleb(-dtype.scale), ROUND_HALF_UP, _WIDE)
    return rounded if abs(rounded) < Decimal(10) ** (dtype.precision - dtype.scale) else None


def to_json(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The values as JSON."""
    (values,) = broadcast_all(arguments)
    return _text(values)


def _text(values: Array) -> Array:
    """JSON texts; NULL for NULL."""
    dtype = values.type
    if is_struct(dtype):
        return _object(values)
    if is_array(dtype) or is_map(dtype):
        return _list(values)
    if pa.types.is_string(dtype):
        return map_distinct(values, quoted_json, STRING)
    if pa.types.is_binary(dtype):
        return map_distinct(values, lambda each: f'"{base64.b64encode(each).decode()}"', STRING)
    if pa.types.is_timestamp(dtype):
        zone = "XXX" if dtype == TIMESTAMP else ""
        return _quoted(format_moments(values.view(TIMESTAMP), f"yyyy-MM-dd'T'HH:mm:ss.SSS{zone}"))
    if pa.types.is_date(dtype):
        return _quoted(cast(values, STRING))
    if pa.types.is_decimal(dtype) and dtype.scale > 6:
        return map_distinct(values, str, STRING)
    written = values.cast(STRING) if pa.types.is_null(dtype) else cast(values, STRING)
    if pa.types.is_floating(dtype):
        return map_distinct(written, lambda each: each if each[-1].isdigit() else f'"{each}"', STRING)
    return written


def _quoted(texts: Array) -> Array:
    return kernel("binary_join_element_wise", pa.scalar('"'), texts, pa.scalar('"'), pa.scalar(""))


def _object(values: Array) -> Array:
    """A struct without its NULLs."""
    parts = [
        kernel("binary_join_element_wise", pa.scalar(f"{quoted_json(field.name)}:"), _text(part), pa.scalar(""))
        for field, part in zip(values.type, fields(values), strict=True)
    ]
    texts = zip(*(part.to_pylist() for part in parts), strict=True) if parts else [()] * len(values)
    made: Array = pa.array([f"{{{','.join(each for each in row if each is not None)}}}" for row in texts], STRING)
    return nullify(made, kernel("is_null", values))


def _list(values: Array) -> Array:
    offsets, inner = elements(values)
    if is_map(values.type):
        keys, items = fields(inner)
        named = map_distinct(cast(keys, STRING), lambda name: f"{quoted_json(name)}:", STRING)
        each = kernel("binary_join_element_wise", named, _or_null(items), pa.scalar(""))
    else:
        each = _or_null(inner)
    joined = kernel("binary_join", list_array(pa.list_(STRING), offsets, each, None), pa.scalar(","))
    opening, closing = ("{", "}") if is_map(values.type) else ("[", "]")
    whole = kernel("binary_join_element_wise", pa.scalar(opening), joined, pa.scalar(closing), pa.scalar(""))
    return nullify(whole, kernel("is_null", values))


def _or_null(values: Array) -> Array:
    return kernel("coalesce", _text(values), pa.scalar("null"))


FUNCTIONS: dict[str, Function] = {"from_json": one(from_json), "to_json": one(to_json)}
