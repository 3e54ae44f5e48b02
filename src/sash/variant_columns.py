"""Columns of VARIANT, or with variants inside, in their three forms: as they are stored, as JSON texts, and encoded as by Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from sash.plan.sql_types import Variant, export
from sash.plan.types import holds, is_array, is_map, is_struct
from sash.plan.variants import from_binary, stored_variant, to_binary, variant_json
from sash.state.nested import elements, fields, list_array, struct_array, valid_mask

Convert = Callable[[pa.Array, pa.DataType], pa.Array]
ENCODED = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)
"""The type in which Arrow exchanges variants with Spark."""


def holds_variants(dtype: pa.DataType) -> bool:
    """Whether the type is VARIANT, or has it anywhere inside."""
    return holds(dtype, lambda part: isinstance(part, Variant))


def store_variants(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """A column of the type with its variants as they are stored; they were encoded as by Spark, or texts of JSON."""
    return _changed(column, dtype, _store, _unchanged)


def encode_variants(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """A column of the type with its stored variants as Spark encodes them."""
    return _changed(column, dtype, _encode, _unchanged)


def exported_column(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """A stored column of the type as it is outside of plans; variants are texts of JSON."""
    return _changed(column, dtype, _export, export)


def _unchanged(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    return column


def _store(column: pa.Array) -> pa.Array:
    if not pa.types.is_struct(column.type):
        return _mapped(column, stored_variant, pa.string())
    value, metadata = (part.to_pylist() for part in fields(column))
    known: dict[tuple[bytes, bytes], str] = {}
    texts: list[str | None] = []
    for pair in zip(value, metadata, strict=True):
        if pair[0] is None:
            texts.append(None)
            continue
        if pair not in known:
            known[pair] = from_binary(*pair)
        texts.append(known[pair])
    return pa.array(texts, pa.string())


def _export(column: pa.Array) -> pa.Array:
    return _mapped(column, variant_json, pa.string())


def _encode(column: pa.Array) -> pa.Array:
    def encoded(stored: str) -> dict[str, bytes]:
        value, metadata = to_binary(stored)
        return {"value": value, "metadata": metadata}

    return _mapped(column, encoded, ENCODED)


def _mapped(column: pa.Array, convert: Callable[[str], object], dtype: pa.DataType) -> pa.Array:
    """The values converted, each distinct one once."""
    encoded = column.cast(pa.string()).dictionary_encode()
    made = [convert(text) for text in encoded.dictionary.to_pylist()]
    at = encoded.indices.to_pylist()
    return pa.array([None if place is None else made[place] for place in at], dtype)


def _changed(column: pa.Array, dtype: pa.DataType, convert: Callable[[pa.Array], pa.Array], other: Convert) -> pa.Array:
    """The column with its variants converted, and what holds none by `other`, level by level."""
    if isinstance(dtype, Variant):
        return convert(column)
    if not holds_variants(dtype):
        return other(column, dtype)
    valid = valid_mask(column)
    if is_struct(dtype):
        parts = [_changed(part, field.type, convert, other) for part, field in zip(fields(column), dtype, strict=True)]
        made = pa.struct([pa.field(field.name, part.type) for field, part in zip(dtype, parts, strict=True)])
        return struct_array(made, parts, len(column), valid)
    offsets, inner = elements(column)
    if is_array(dtype):
        values = _changed(inner, dtype.value_type, convert, other)
        return list_array(pa.list_(values.type), offsets, values, valid)
    assert is_map(dtype)
    key, item = fields(inner)
    key, values = other(key, dtype.key_type), _changed(item, dtype.item_type, convert, other)
    entry = pa.struct([pa.field("key", key.type), pa.field("value", values.type)])
    entries = struct_array(entry, [key, values], len(key), None)
    return list_array(pa.map_(key.type, values.type), offsets, entries, valid)
