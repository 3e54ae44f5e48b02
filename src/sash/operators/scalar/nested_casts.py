"""CAST of arrays, structs and maps: to types of the same kind, part by part, and to STRING."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from sash.operators.scalar.arrays import Array, kernel, nullify
from sash.plan.types import is_array, is_map, is_struct, parts_of
from sash.state.nested import elements, entry_type, fields, list_array, struct_array, valid_mask

Convert = Callable[[Array, pa.DataType], Array]


def same_kind(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether both are arrays, or maps, or structs of as many fields."""
    structs = is_struct(source) and is_struct(target) and len(parts_of(source)) == len(parts_of(target))
    return (is_array(source) and is_array(target)) or (is_map(source) and is_map(target)) or structs


def cast_nested(values: Array, dtype: pa.DataType, convert: Convert) -> Array:
    """A cast to a type of the same kind: `convert` casts every element, field, key and value."""
    if is_struct(dtype):
        parts = [convert(part, field.type) for part, field in zip(fields(values), dtype, strict=True)]
        return struct_array(dtype, parts, len(values), valid_mask(values))
    offsets, inner = elements(values)
    target = entry_type(dtype) if is_map(dtype) else dtype.value_type
    return list_array(dtype, offsets, convert(inner, target), valid_mask(values))


def text_of(values: Array, convert: Convert) -> Array:
    """`[1, null]`, `{1, a}` or `{k -> 1}`; `convert` casts the parts."""

    def text(part: Array) -> Array:
        return kernel("coalesce", convert(part, pa.string()), pa.scalar("null"))

    if is_struct(values.type):
        inner = _joined([text(part) for part in fields(values)], ", ", len(values))
        return _wrapped("{", inner, "}", values)
    offsets, inner = elements(values)
    each = _joined([text(part) for part in fields(inner)], " -> ", len(inner)) if is_map(values.type) else text(inner)
    lists = list_array(pa.list_(pa.string()), offsets, each, None)
    opening, closing = ("{", "}") if is_map(values.type) else ("[", "]")
    return _wrapped(opening, kernel("binary_join", lists, pa.scalar(", ")), closing, values)


def _joined(parts: list[Array], separator: str, rows: int) -> Array:
    if not parts:
        return pa.repeat("", rows)
    return kernel("binary_join_element_wise", *parts, pa.scalar(separator)) if len(parts) > 1 else parts[0]


def _wrapped(opening: str, inner: Array, closing: str, like: Array) -> Array:
    whole = kernel("binary_join_element_wise", pa.scalar(opening), inner, pa.scalar(closing), pa.scalar(""))
    return nullify(whole, kernel("is_null", like))
