"""The type of a JSON value, as SCHEMA_OF_JSON infers it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from sash.plan import types
from sash.plan.json_reader import JsonError, JsonNumber, JsonObject, read_json

_MOST_DIGITS = 38


def schema_of(text: str) -> str:
    """The type of the first value in a text; JsonError if there is none, or if an object has two fields of a name.

    >>> schema_of('{"b": [1, 2.5], "a": null}')
    'STRUCT<a: STRING, b: ARRAY<DOUBLE>>'
    """
    return types.type_name(_known(_type(read_json(text, strict=True))))


def _type(value: Any) -> pa.DataType:
    match value:
        case None:
            return types.NULL
        case bool():
            return types.BOOLEAN
        case str():
            return types.STRING
        case JsonNumber():
            return _number(value)
        case list():
            merged = types.NULL
            for each in value:
                merged = _merged(merged, _type(each))
            return types.array_of(merged)
        case JsonObject():
            if len({name for name, _ in value.pairs}) < len(value.pairs):
                raise JsonError
            return types.struct_of(sorted((name, _type(each)) for name, each in value.pairs if name))
        case _:
            raise TypeError(f"no JSON value: {value!r}")


def _number(number: JsonNumber) -> pa.DataType:
    if not number.whole:
        return types.DOUBLE
    if -(2**63) <= int(number.text) < 2**63:
        return types.BIGINT
    digits = len(Decimal(number.text).as_tuple().digits)
    return pa.decimal128(digits, 0) if digits <= _MOST_DIGITS else types.DOUBLE


def _merged(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of values of both types; STRING if there is no other."""
    if right in (left, types.NULL):
        return left
    if left == types.NULL:
        return right
    if types.is_numeric(left) and types.is_numeric(right):
        return _merged_numbers(left, right)
    if types.is_array(left) and types.is_array(right):
        return types.array_of(_merged(left.value_type, right.value_type))
    if types.is_struct(left) and types.is_struct(right):
        fields = {field.name: field.type for field in left}
        for field in right:
            fields[field.name] = _merged(fields[field.name], field.type) if field.name in fields else field.type
        return types.struct_of(sorted(fields.items()))
    return types.STRING


def _merged_numbers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if types.DOUBLE in (left, right):
        return types.DOUBLE
    digits = max(20 if dtype == types.BIGINT else dtype.precision for dtype in (left, right))
    return pa.decimal128(digits, 0)


def _known(dtype: pa.DataType) -> pa.DataType:
    """The type with STRING for values that are all null, and without fields that have no type."""
    if dtype == types.NULL:
        return types.STRING
    if types.is_array(dtype):
        return types.array_of(_known(dtype.value_type))
    if types.is_struct(dtype):
        return types.struct_of([(field.name, _known(field.type)) for field in dtype])
    return dtype
