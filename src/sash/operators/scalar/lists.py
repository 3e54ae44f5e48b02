"""Functions of arrays of any type, over the elements of all rows at once; elements are compared by their ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, Numbers, broadcast_all, kernel, numbers
from sash.operators.scalar.function import MANY, Function, one, two
from sash.operators.scalar.ranks import NO_VALUE, first_of_each, offsets_of, owners, positive_zeros, ranks
from sash.operators.scalar.series import SERIES
from sash.state.nested import elements, list_array, struct_array, valid_mask

LONGEST = 2**24
"""The most elements of an array that a function makes."""


def _known(columns: Sequence[Array]) -> Numbers:
    """The mask of rows in which no column is NULL."""
    known = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        known &= kernel("is_valid", column).to_numpy(zero_copy_only=False)
    return known


def _chosen(column: Array, dtype: pa.DataType, rows: Numbers, inner: Array, places: Numbers) -> Array:
    """The arrays of the elements at these places, which are in order of their rows."""
    offsets = offsets_of(np.bincount(rows[places], minlength=len(column)))
    return list_array(dtype, offsets, inner.take(pa.array(places)), valid_mask(column))


def _parts(column: Array) -> tuple[Numbers, Numbers, Array]:
    """The offsets, the row of each element, and the elements."""
    offsets, inner = elements(column)
    return offsets, owners(offsets), inner


def _join(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    column, delimiter, *instead = broadcast_all(arguments)
    _, rows, inner = _parts(column)
    if instead:
        inner = kernel("coalesce", inner, instead[0].take(pa.array(rows)))
    places = np.flatnonzero(kernel("is_valid", inner).to_numpy(zero_copy_only=False))
    joined = kernel("binary_join", _chosen(column, column.type, rows, inner, places), delimiter)
    known = _known([column, delimiter, *instead])
    return joined if known.all() else joined.take(pa.array(np.arange(len(column)), mask=~known))


def _distinct(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    (column,) = broadcast_all(arguments)
    _, rows, inner = _parts(column)
    return _chosen(column, dtype, rows, positive_zeros(inner), first_of_each(rows, ranks(inner)))


def _extreme(sign: int, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAY_MIN (1) or ARRAY_MAX (-1): the first of the least or greatest elements that are not NULL."""
    (column,) = broadcast_all(arguments)
    _, rows, inner = _parts(column)
    codes = ranks(inner)
    order = np.lexsort((np.where(codes == NO_VALUE, len(codes), sign * codes), rows))
    found, first = np.unique(rows[order], return_index=True)
    source = np.full(len(column), -1, np.int64)
    source[found] = order[first]
    return inner.take(pa.array(source, mask=source < 0))


def _matches(column: Array, wanted: Array) -> tuple[Numbers, Numbers, Array, Numbers]:
    """The offsets, rows and elements of arrays, and which elements equal the value that is wanted in their row."""
    offsets, rows, inner = _parts(column)
    codes = ranks(pa.concat_arrays([inner, wanted]))
    here, there = codes[: len(inner)], codes[len(inner) :]
    return offsets, rows, inner, (here != NO_VALUE) & (here == there[rows])


def _position(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    column, wanted = broadcast_all(arguments)
    offsets, rows, _, same = _matches(column, wanted)
    places = np.flatnonzero(same)
    found, first = np.unique(rows[places], return_index=True)
    result = np.zeros(len(column), np.int64)
    result[found] = places[first] - offsets[found] + 1
    return pa.array(result, mask=~_known([column, wanted]))


def _remove(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    column, unwanted = broadcast_all(arguments)
    known = _known([column, unwanted])
    _, rows, inner, same = _matches(column, unwanted)
    places = np.flatnonzero(~same & known[rows])
    offsets = offsets_of(np.bincount(rows[places], minlength=len(column)))
    return list_array(dtype, offsets, inner.take(pa.array(places)), known)


def _compact(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    (column,) = broadcast_all(arguments)
    _, rows, inner = _parts(column)
    places = np.flatnonzero(kernel("is_valid", inner).to_numpy(zero_copy_only=False))
    return _chosen(column, dtype, rows, inner, places)


def _repeat(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    value, count = broadcast_all(arguments)
    counts = np.maximum(numbers(count).astype(np.int64), 0)
    _refuse_long("array_repeat", counts)
    return list_array(
        dtype, offsets_of(counts), value.take(pa.array(np.repeat(np.arange(len(value)), counts))), _known([count])
    )


def _refuse_long(function: str, counts: Numbers) -> None:
    if counts.max(initial=0) > LONGEST:
        raise EvaluationError(f"{function}: the array has more than {LONGEST:,} elements")


def _slice(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    column, start, length = broadcast_all(arguments)
    known = _known([column, start, length])
    first, count = (numbers(part).astype(np.int64) for part in (start, length))
    if (known & ((first == 0) | (count < 0))).any():
        raise EvaluationError("slice: positions begin at 1, or at -1 from the end, and the length is 0 or more")
    offsets, rows, inner = _parts(column)
    sizes = np.diff(offsets)
    first = np.where(first > 0, first - 1, sizes + first)
    within = np.arange(len(rows)) - offsets[rows]
    inside = known & (first >= 0)
    places = np.flatnonzero(inside[rows] & (within >= first[rows]) & (within - first[rows] < count[rows]))
    made = offsets_of(np.bincount(rows[places], minlength=len(column)))
    return list_array(dtype, made, inner.take(pa.array(places)), known)


def _sort(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """SORT_ARRAY: NULLs first, or last if it is descending."""
    (column,) = broadcast_all(arguments[:1])
    ascending = len(arguments) == 1 or bool(arguments[1].as_py())
    return _sorted(column, lambda codes: codes if ascending else -codes, dtype)


def _sort_nulls_last(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAY_SORT without a lambda."""
    (column,) = broadcast_all(arguments)
    return _sorted(column, lambda codes: np.where(codes == NO_VALUE, len(codes), codes), dtype)


def _sorted(column: Array, key: Callable[[Numbers], Numbers], dtype: pa.DataType) -> Array:
    offsets, rows, inner = _parts(column)
    order = np.lexsort((key(ranks(inner)), rows))
    return list_array(dtype, offsets, inner.take(pa.array(order)), valid_mask(column))


def _reverse(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    (column,) = broadcast_all(arguments)
    offsets, rows, inner = _parts(column)
    order = offsets[rows] + offsets[rows + 1] - 1 - np.arange(len(rows))
    return list_array(dtype, offsets, inner.take(pa.array(order)), valid_mask(column))


def _concat(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """CONCAT of arrays: NULL if one of them is."""
    columns = broadcast_all(arguments)
    known = _known(columns)
    parts = [_parts(column) for column in columns]
    rows = np.concatenate([part[1] for part in parts])
    places = np.flatnonzero(known[rows])
    places = places[np.argsort(rows[places], kind="stable")]
    inner = pa.concat_arrays([part[2] for part in parts]).take(pa.array(places))
    return list_array(dtype, offsets_of(np.bincount(rows[places], minlength=len(known))), inner, known)


def _flatten(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """FLATTEN: NULL if one of the arrays within is."""
    (column,) = broadcast_all(arguments)
    offsets, rows, inner = _parts(column)
    known = _known([column])
    known[rows[kernel("is_null", inner).to_numpy(zero_copy_only=False)]] = False
    ends, values = elements(inner)
    sizes = np.where(known, ends[offsets[1:]] - ends[offsets[:-1]], 0)
    if not known.all():
        values = values.take(pa.array(np.flatnonzero(known[rows[owners(ends)]])))
    return list_array(dtype, offsets_of(sizes), values, known)


def _sets(arguments: Sequence[Datum]) -> tuple[Numbers, Numbers, Numbers, Array, int]:
    """Of two arrays: which rows have both, and of the elements of these: the row, the code and the value, those of the first
    array before the others, and how many are of the first array."""
    columns = broadcast_all(arguments)
    known = _known(columns)
    parts = [_parts(column) for column in columns]
    chosen = [np.flatnonzero(known[rows]) for _, rows, _ in parts]
    inner = pa.concat_arrays([part[2].take(pa.array(places)) for part, places in zip(parts, chosen, strict=True)])
    rows = np.concatenate([part[1][places] for part, places in zip(parts, chosen, strict=True)])
    return known, rows, ranks(inner), positive_zeros(inner), len(chosen[0])


def _pairs(rows: Numbers, codes: Numbers) -> Numbers:
    return np.asarray(rows * (int(codes.max(initial=0)) + 2) + codes + 1)


def _combine(kind: str, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAY_UNION, ARRAY_INTERSECT and ARRAY_EXCEPT, without duplicates; NULL equals NULL."""
    known, rows, codes, inner, border = _sets(arguments)
    first = first_of_each(rows, codes) if kind == "union" else first_of_each(rows[:border], codes[:border])
    if kind != "union":
        pairs = _pairs(rows, codes)
        found = np.isin(pairs[first], pairs[border:])
        first = first[found if kind == "intersect" else ~found]
    first = first[np.argsort(rows[first], kind="stable")]
    offsets = offsets_of(np.bincount(rows[first], minlength=len(known)))
    return list_array(dtype, offsets, inner.take(pa.array(first)), known)


def _overlap(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAYS_OVERLAP: NULL without a common element if both arrays have elements, and one of these is NULL."""
    known, rows, codes, _, border = _sets(arguments)
    pairs, value = _pairs(rows, codes), codes != NO_VALUE
    shared = value[:border] & np.isin(pairs[:border], pairs[border:][value[border:]])
    result, unknown = np.zeros(len(known), np.bool_), np.zeros(len(known), np.bool_)
    result[rows[:border][shared]] = True
    unknown[rows[~value]] = True
    for side in (rows[:border], rows[border:]):
        unknown &= np.bincount(side, minlength=len(known)) > 0
    return pa.array(result, mask=~known | (unknown & ~result))


def _with_value(column: Array, value: Array, index: Numbers, sizes: Numbers, shift: Numbers, known: Numbers) -> Array:
    """The arrays with one more element at each index, and `shift` NULLs before the others; `sizes` are the new ones."""
    offsets, _, inner = _parts(column)
    made = offsets_of(np.where(known, sizes, 0))
    rows = owners(made)
    within = np.arange(len(rows)) - made[rows]
    source = within - shift[rows] - (within > index[rows])
    inside = (source >= 0) & (source < np.diff(offsets)[rows])
    added = within == index[rows]
    places = np.where(added, len(inner) + rows, np.where(inside, offsets[rows] + source, 0))
    pool = pa.concat_arrays([inner, value])
    return list_array(column.type, made, pool.take(pa.array(places, mask=~(inside | added))), known)


def _add(at_end: bool, arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAY_APPEND and ARRAY_PREPEND."""
    column, value = broadcast_all(arguments)
    sizes = np.diff(elements(column)[0])
    none = np.zeros(len(column), np.int64)
    return _with_value(column, value, sizes if at_end else none, sizes + 1, none, _known([column]))


def _insert(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAY_INSERT(array, position, value): positions count from 1, or from -1 at the end; NULLs fill a gap."""
    column, position, value = broadcast_all(arguments)
    known = _known([column, position])
    wanted = numbers(position).astype(np.int64)
    if (known & (wanted == 0)).any():
        raise EvaluationError("array_insert: positions begin at 1, or at -1 from the end, and 0 is not a position")
    count = np.diff(elements(column)[0])
    sizes = np.maximum(count + 1, np.abs(wanted))
    _refuse_long("array_insert", np.where(known, sizes, 0))
    index = np.where(wanted > 0, wanted - 1, sizes + wanted)
    # Counted from the end, a gap is between the value and the first element.
    shift = np.where(wanted < 0, sizes - count - 1, 0)
    return _with_value(column, value, index, sizes, shift, known)


def _zip(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
    """ARRAYS_ZIP: structs of the elements at each position, NULL in fields whose array is shorter."""
    columns = broadcast_all(arguments)
    known = _known(columns)
    parts = [elements(column) for column in columns]
    made = offsets_of(np.where(known, np.max([np.diff(offsets) for offsets, _ in parts], axis=0), 0))
    rows = owners(made)
    within = np.arange(len(rows)) - made[rows]
    fields = []
    for offsets, inner in parts:
        beyond = within >= np.diff(offsets)[rows]
        fields.append(inner.take(pa.array(np.where(beyond, 0, offsets[rows] + within), mask=beyond)))
    return list_array(dtype, made, struct_array(dtype.value_type, fields, len(rows), None), known)


FUNCTIONS: dict[str, Function] = {
    "array_join": Function(_join, 2, 3),
    "array_distinct": one(_distinct),
    "array_max": one(partial(_extreme, -1)),
    "array_min": one(partial(_extreme, 1)),
    "array_position": two(_position),
    "array_remove": two(_remove),
    "array_repeat": Function(_repeat, 2, 2, strict=False, fails=True),
    "slice": Function(_slice, 3, 3, fails=True),
    "sort_array": Function(_sort, 1, 2),
    "array_sort": one(_sort_nulls_last),
    "array_reverse": one(_reverse),
    "array_concat": Function(_concat, 1, MANY),
    "flatten": one(_flatten),
    "array_union": two(partial(_combine, "union")),
    "array_intersect": two(partial(_combine, "intersect")),
    "array_except": two(partial(_combine, "except")),
    "arrays_overlap": two(_overlap),
    "array_append": Function(partial(_add, True), 2, 2, strict=False),
    "array_prepend": Function(partial(_add, False), 2, 2, strict=False),
    "array_insert": Function(_insert, 3, 3, strict=False, fails=True),
    "array_compact": one(_compact),
    "arrays_zip": Function(_zip, 1, MANY),
    **SERIES,
}
