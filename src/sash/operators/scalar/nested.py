"""Arrays, structs and maps: constructors and accessors, with Spark's ANSI semantics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, Numbers, broadcast_all, kernel, nullify, numbers
from sash.operators.scalar.comparisons import compare
from sash.state.hashing import hash_rows
from sash.state.nested import elements, entry_type, fields, list_array, struct_array, valid_mask


def array(arguments: Sequence[Datum], dtype: pa.DataType) -> Datum:
    """ARRAY(a, b, ...): one array of all arguments in each row."""
    if not arguments:
        return pa.scalar([], dtype)
    values, rows = _interleave(arguments)
    return list_array(dtype, np.arange(rows + 1) * len(arguments), values, None)


def _interleave(arguments: Sequence[Datum]) -> tuple[Array, int]:
    """The values of all columns, row by row, and the number of rows."""
    columns = broadcast_all(arguments)
    rows, count = len(columns[0]), len(columns)
    order = np.arange(rows * count).reshape(count, rows).T.reshape(-1)
    return pa.concat_arrays(columns).take(pa.array(order)), rows


def struct(arguments: Sequence[Datum], dtype: pa.DataType) -> Datum:
    """NAMED_STRUCT, without the names, which are those of the type."""
    if not arguments:
        return pa.scalar({}, dtype)
    columns = broadcast_all(arguments)
    return struct_array(dtype, columns, len(columns[0]), None)


def map_of(arguments: Sequence[Datum], dtype: pa.DataType) -> Datum:
    """MAP(key, value, key, value, ...)."""
    if not arguments:
        return pa.scalar([], dtype)
    columns = broadcast_all(arguments)
    keys, rows = _interleave(columns[::2])
    values, _ = _interleave(columns[1::2])
    return map_column(dtype, np.arange(rows + 1) * (len(arguments) // 2), keys, values, None)


def map_from_arrays(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """MAP_FROM_ARRAYS(keys, values)."""
    left, right = broadcast_all(arguments)
    both = kernel("and", kernel("is_valid", left), kernel("is_valid", right))
    left, right = (nullify(column, kernel("invert", both)) for column in (left, right))
    (offsets, keys), (others, values) = elements(left), elements(right)
    if (offsets != others).any():
        raise EvaluationError("map_from_arrays: the array of keys and the array of values have different lengths")
    return map_column(dtype, offsets, keys, values, valid_mask(left))


def map_from_entries(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """MAP_FROM_ENTRIES(array of structs of two fields); NULL if an entry is."""
    (column,) = broadcast_all(arguments)
    offsets, inner = elements(column)
    valid = valid_mask(column)
    missing = valid_mask(inner)
    if missing is not None:
        owner = np.repeat(np.arange(len(column)), np.diff(offsets))
        valid = np.ones(len(column), np.bool_) if valid is None else valid.copy()
        valid[owner[~missing]] = False
        column = nullify(column, pa.array(~valid))
        offsets, inner = elements(column)
    keys, values = fields(inner)
    return map_column(dtype, offsets, keys, values, valid)


def map_concat(arguments: Sequence[Datum], dtype: pa.DataType) -> Datum:
    """MAP_CONCAT(map, map, ...); NULL if one of them is."""
    if not arguments:
        return pa.scalar([], dtype)
    columns = broadcast_all(arguments)
    known = np.logical_and.reduce([kernel("is_valid", column).to_numpy(zero_copy_only=False) for column in columns])
    parts = [elements(column) for column in columns]
    rows = np.concatenate([np.repeat(np.arange(len(known)), np.diff(offsets)) for offsets, _ in parts])
    places = np.flatnonzero(known[rows])
    places = places[np.argsort(rows[places], kind="stable")]
    keys, values = fields(pa.concat_arrays([inner for _, inner in parts]).take(pa.array(places)))
    offsets = np.zeros(len(known) + 1, np.int64)
    np.cumsum(np.bincount(rows[places], minlength=len(known)), out=offsets[1:])
    return map_column(dtype, offsets, keys, values, known)


def map_column(dtype: pa.DataType, offsets: Numbers, keys: Array, values: Array, valid: Numbers | None) -> Array:
    """A map column; keys may be neither NULL nor repeated."""
    if keys.null_count:
        raise EvaluationError("a key of a map cannot be NULL: filter NULL keys, or replace them with COALESCE")
    if pa.types.is_floating(keys.type):
        keys = kernel("add", keys, pa.scalar(0.0, keys.type))
    owner: Array = pa.array(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)))
    low, high = hash_rows([owner, keys], len(keys))
    if len(np.unique(np.stack((low, high), axis=1), axis=0)) < len(keys):
        raise EvaluationError("a map has the same key twice: make the keys of a map distinct")
    entries = struct_array(entry_type(dtype), [keys, values], len(keys), None)
    return list_array(dtype, offsets, entries, valid)


def map_part(place: int, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """MAP_KEYS (0) or MAP_VALUES (1)."""
    (column,) = broadcast_all(arguments)
    offsets, entries = elements(column)
    return list_array(dtype, offsets, fields(entries)[place], valid_mask(column))


def map_entries(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """MAP_ENTRIES: the entries as an array of structs."""
    (column,) = broadcast_all(arguments)
    offsets, entries = elements(column)
    return list_array(dtype, offsets, entries, valid_mask(column))


def size(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """SIZE and CARDINALITY of an array or map; NULL for NULL."""
    (column,) = broadcast_all(arguments)
    offsets, _ = elements(column)
    return pa.array(np.diff(offsets).astype(np.int32), mask=kernel("is_null", column).to_numpy(zero_copy_only=False))


def get_field(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """The field of a struct by its name; of an array of structs, the array of their fields."""
    value, name = broadcast_all(arguments[:1])[0], arguments[1].as_py()
    if pa.types.is_list(value.type):
        offsets, inner = elements(value)
        return list_array(dtype, offsets, fields(inner)[inner.type.get_field_index(name)], valid_mask(value))
    return fields(value)[value.type.get_field_index(name)]


def get_item(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """`array[index]`, which fails out of bounds, and `map[key]`, which is NULL for a missing key."""
    value, key = broadcast_all(arguments)
    if pa.types.is_map(value.type):
        return _lookup(value, key)
    return _element(value, key, 0, "use get(array, index) to get NULL instead")


def get(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """GET(array, index): NULL out of bounds."""
    value, key = broadcast_all(arguments)
    return _element(value, key, 0, None)


def element_at(lenient: bool, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ELEMENT_AT and TRY_ELEMENT_AT: the value of a key, or an element by its position from 1, or from the end by -1."""
    value, key = broadcast_all(arguments)
    if pa.types.is_map(value.type):
        return _lookup(value, key)
    positions = numbers(key)
    known = (kernel("and", kernel("is_valid", value), kernel("is_valid", key))).to_numpy(zero_copy_only=False)
    if (known & (positions == 0)).any():
        raise EvaluationError("element_at: positions begin at 1, or at -1 from the end, and 0 is not a position")
    return _element(value, key, 1, None if lenient else "use try_element_at to get NULL instead")


def _element(value: Array, key: Array, first: int, instead: str | None) -> Array:
    """The element at each position, of which the first is 0 or 1; below 1 they count from the end if it is 1."""
    offsets, inner = elements(value)
    sizes, index = np.diff(offsets), numbers(key).astype(np.int64) - first
    if first == 1:
        index = np.where(index < -1, index + 1 + sizes, index)
    known = kernel("and", kernel("is_valid", value), kernel("is_valid", key)).to_numpy(zero_copy_only=False)
    inside = known & (index >= 0) & (index < sizes)
    if instead is not None and (known & ~inside).any():
        row = int(np.flatnonzero(known & ~inside)[0])
        raise EvaluationError(
            f"the array has {int(sizes[row])} elements, and position {key[row].as_py()} is not among them; {instead}"
        )
    return inner.take(pa.array(np.where(inside, offsets[:-1] + index, 0), mask=~inside))


def _lookup(value: Array, key: Array) -> Array:
    """The value of each row's key in its map, NULL if there is none."""
    offsets, entries = elements(value)
    keys, values = fields(entries)
    owner = np.repeat(np.arange(len(value)), np.diff(offsets))
    found = kernel("coalesce", compare("eq", keys, key.take(pa.array(owner))), pa.scalar(False))
    places = np.flatnonzero(found.to_numpy(zero_copy_only=False))
    source = np.full(len(value), -1, np.int64)
    source[owner[places]] = places
    return values.take(pa.array(source, mask=source < 0))


def array_contains(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAY_CONTAINS(array, value): NULL without a match if an element is NULL."""
    value, wanted = broadcast_all(arguments)
    offsets, inner = elements(value)
    owner = np.repeat(np.arange(len(value)), np.diff(offsets))
    same = compare("eq", inner, wanted.take(pa.array(owner)))
    hits, unknown = np.zeros(len(value), np.bool_), np.zeros(len(value), np.bool_)
    hits[owner[kernel("coalesce", same, pa.scalar(False)).to_numpy(zero_copy_only=False)]] = True
    unknown[owner[kernel("is_null", same).to_numpy(zero_copy_only=False)]] = True
    known = kernel("and", kernel("is_valid", value), kernel("is_valid", wanted)).to_numpy(zero_copy_only=False)
    return pa.array(hits, mask=~known | (unknown & ~hits))


def map_contains_key(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """MAP_CONTAINS_KEY(map, key)."""
    value, key = broadcast_all(arguments)
    keys = map_part(0, [value], pa.list_(value.type.key_type))
    return array_contains([keys, key], dtype)
