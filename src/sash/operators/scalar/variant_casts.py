"""Casts from VARIANT, which is stored as text, and to it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, broadcast_all
from sash.operators.scalar.casts import can_cast, cast
from sash.operators.scalar.function import Function, by_value, one
from sash.plan.json_reader import JsonNumber, JsonObject, TypedScalar
from sash.plan.types import STRING, is_array, is_integer, is_map, is_struct, type_name
from sash.plan.variant_numbers import decimal, double, scalar_of
from sash.plan.variants import LETTERS, read_stored, sort_key, typed_text, variant_json, write_stored
from sash.state.nested import elements, fields, list_array, struct_array

_LETTER = {dtype: letter for letter, dtype in LETTERS.items() if letter != "e"}


def to_text(stored: str) -> str | None:
    """CAST(variant AS STRING): a string as it is, anything else as JSON."""
    return _text(read_stored(stored))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, TypedScalar):
        return cast(_scalar(value), STRING)[0].as_py() if value.kind in LETTERS else typed_text(value)
    return variant_json(write_stored(value))


def _cast(lenient: bool, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Variants as values of a type; NULL of those that are null."""
    (values,) = broadcast_all(arguments)
    encoded = values.dictionary_encode()
    made = [_converted(read_stored(stored), dtype, lenient) for stored in encoded.dictionary.to_pylist()]
    whole: Array = pa.concat_arrays(made) if made else pa.array([], dtype)
    return whole.take(encoded.indices)


def _converted(value: Any, dtype: pa.DataType, lenient: bool) -> Array:
    """A column of one value."""
    if value is None:
        return pa.nulls(1, dtype)
    if is_array(dtype) and isinstance(value, list):
        return _list(dtype, [_converted(each, dtype.value_type, lenient) for each in value], dtype.value_type)
    if is_struct(dtype) and isinstance(value, JsonObject):
        known = dict(value.pairs)
        parts = [_converted(known.get(field.name), field.type, lenient) for field in dtype]
        return struct_array(dtype, parts, 1, None)
    if is_map(dtype) and isinstance(value, JsonObject):
        items = _joined([_converted(each, dtype.item_type, lenient) for _, each in value.pairs], dtype.item_type)
        keys = pa.array([name for name, _ in value.pairs], dtype.key_type)
        entry = pa.struct([pa.field("key", keys.type), pa.field("value", items.type)])
        return list_array(dtype, _offsets(len(keys)), struct_array(entry, [keys, items], len(keys), None), None)
    if dtype == STRING:
        return pa.array([_text(value)], STRING)
    scalar = None if isinstance(value, list | JsonObject) else _scalar(value)
    found = pa.nulls(1, dtype) if scalar is None or not _allowed(scalar.type, dtype) else cast(scalar, dtype, True)
    if found.null_count and not lenient:
        raise EvaluationError(
            f"the variant {variant_json(write_stored(value))[:40]} is no {type_name(dtype)}; use try_variant_get or TRY_CAST "
            "to get NULL instead"
        )
    return found


def _allowed(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether a value of one type in a variant becomes one of the other."""
    if want == pa.binary():
        return bool(have in (want, STRING))
    if want == LETTERS["t"] and have == pa.bool_():
        return False
    return can_cast(have, want)


def _list(dtype: pa.DataType, parts: list[Array], inner: pa.DataType) -> Array:
    return list_array(dtype, _offsets(len(parts)), _joined(parts, inner), None)


def _joined(parts: list[Array], dtype: pa.DataType) -> Array:
    return pa.concat_arrays(parts) if parts else pa.array([], dtype)


def _offsets(count: int) -> Any:
    return pa.array([0, count], pa.int64()).to_numpy()


def _scalar(value: Any) -> Array:
    """A scalar as a column of its type."""
    if isinstance(value, TypedScalar):
        if value.kind not in LETTERS:
            raise EvaluationError(f"Sash does not cast a UUID in a variant: {value.text}")
        return _typed(value, LETTERS[value.kind])
    found = scalar_of(value) if isinstance(value, JsonNumber) else value
    if isinstance(found, Decimal):
        _, digits, exponent = found.as_tuple()
        scale = max(0, -int(exponent))
        return pa.array([found], pa.decimal128(max(len(digits), scale, 1), scale))
    return pa.array([found])


def _typed(value: TypedScalar, dtype: pa.DataType) -> Array:
    if dtype == pa.binary():
        return pa.array([base64.b64decode(value.text)], dtype)
    if pa.types.is_floating(dtype):
        return pa.array([float(value.text)], dtype)
    return pa.array([int(value.text)], pa.int32() if pa.types.is_date(dtype) else pa.int64()).view(dtype)


def _from_values(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """Values of any type as variants; NULL stays NULL."""
    (values,) = broadcast_all(arguments)
    valid = values.is_valid().to_pylist()
    trees = _trees(values)
    return pa.array([write_stored(tree) if there else None for tree, there in zip(trees, valid, strict=True)], STRING)


def _trees(column: Array) -> list[Any]:
    """The values as parts of variants."""
    dtype = column.type
    valid = column.is_valid().to_pylist()
    if is_struct(dtype):
        order = sorted(range(dtype.num_fields), key=lambda place: sort_key(dtype.field(place).name))
        parts = fields(column)
        made = [(dtype.field(place).name, _trees(parts[place])) for place in order]
        return [JsonObject([(name, t[row]) for name, t in made]) if there else None for row, there in enumerate(valid)]
    if is_array(dtype) or is_map(dtype):
        offsets, inner = elements(column)
        if is_array(dtype):
            flat = _trees(inner)
            return [flat[offsets[row] : offsets[row + 1]] if there else None for row, there in enumerate(valid)]
        keys, items = fields(inner)
        pairs = list(zip(keys.to_pylist(), _trees(items), strict=True))
        rows = (
            sorted(pairs[offsets[row] : offsets[row + 1]], key=lambda pair: sort_key(pair[0]))
            for row in range(len(valid))
        )
        return [JsonObject(row) if there else None for row, there in zip(rows, valid, strict=True)]
    return [None if value is None else _tree(value, dtype) for value in _plain(column).to_pylist()]


def _plain(column: Array) -> Array:
    """Dates and times as numbers."""
    if pa.types.is_timestamp(column.type):
        return column.view(pa.int64())
    return column.view(pa.int32()) if pa.types.is_date(column.type) else column


def _tree(value: Any, dtype: pa.DataType) -> Any:
    if isinstance(value, bool | str):
        return value
    if is_integer(dtype):
        return JsonNumber(str(value), whole=True)
    if isinstance(value, Decimal):
        return decimal(value)
    if dtype == pa.float64():
        return double(value)
    if isinstance(value, bytes):
        return TypedScalar("b", base64.b64encode(value).decode())
    return TypedScalar(_LETTER[dtype], repr(value))


FUNCTIONS: dict[str, Function] = {
    "variant_text": by_value(to_text, 1),
    "variant_cast": one(partial(_cast, False), fails=True),
    "variant_try_cast": one(partial(_cast, True)),
    "variant_of": one(_from_values),
}
