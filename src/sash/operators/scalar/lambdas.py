"""Higher-order functions: each evaluates the body of its lambda over the elements of all rows at once.

The elements of the arrays of a batch are one flat column, which is the lambda's variable; columns of the query are repeated
for each element. `aggregate` is evaluated position by position instead, over all arrays that have an element there, and so
are `exists` and `forall` if the body may fail, since they stop at the first element that decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Numbers, kernel, numbers
from sash.operators.scalar.nested import map_column
from sash.operators.scalar.ranks import first_of_each, offsets_of, owners, ranks
from sash.state.nested import elements, entry_type, fields, list_array, struct_array, valid_mask


class Body(Protocol):
    """The body of a lambda with `count` variables; `fails` if it may raise on some values."""

    count: int
    fails: bool

    def __call__(self, rows: Numbers, values: Sequence[Array]) -> Array:
        """The values for these rows of the batch, in which the variables have these values."""


HigherOrder = Callable[[Sequence[Array], Sequence[Body], pa.DataType], Array]


def _variables(body: Body, offsets: Numbers, inner: Array) -> tuple[Numbers, list[Array]]:
    """The row of each element, and the variables of a lambda over elements and perhaps their positions."""
    rows = owners(offsets)
    if body.count == 1:
        return rows, [inner]
    return rows, [inner, pa.array((np.arange(len(rows)) - offsets[rows]).astype(np.int32))]


def _transform(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    offsets, inner = elements(arguments[0])
    return list_array(dtype, offsets, bodies[0](*_variables(bodies[0], offsets, inner)), valid_mask(arguments[0]))


def _filter(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    offsets, inner = elements(arguments[0])
    rows, variables = _variables(bodies[0], offsets, inner)
    return _kept(arguments[0], rows, inner, bodies[0](rows, variables), dtype)


def _kept(column: Array, rows: Numbers, inner: Array, holds: Array, dtype: pa.DataType) -> Array:
    """The arrays or maps of the elements for which the predicate is true."""
    chosen = np.flatnonzero(_is_true(holds))
    offsets = offsets_of(np.bincount(rows[chosen], minlength=len(column)))
    return list_array(dtype, offsets, inner.take(pa.array(chosen)), valid_mask(column))


def _is_true(holds: Array) -> Numbers:
    return np.asarray(kernel("coalesce", holds, pa.scalar(False)).to_numpy(zero_copy_only=False))


def _quantified(decisive: bool, arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    """EXISTS, which is decided by a true element, or FORALL, by a false one; NULL if undecided and an element is NULL."""
    column, body = arguments[0], bodies[0]
    offsets, inner = elements(column)
    decided, unknown = np.zeros(len(column), np.bool_), np.zeros(len(column), np.bool_)

    def test(rows: Numbers, places: Numbers) -> None:
        holds = body(rows, [inner.take(pa.array(places))])
        decided[rows[_is_true(holds if decisive else kernel("invert", holds))]] = True
        unknown[rows[kernel("is_null", holds).to_numpy(zero_copy_only=False)]] = True

    if not body.fails:
        test(owners(offsets), np.arange(len(inner)))
    else:
        sizes = np.diff(offsets)
        for position in range(int(sizes.max(initial=0))):
            rows = np.flatnonzero((sizes > position) & ~decided)
            if len(rows):
                test(rows, offsets[rows] + position)
    missing = kernel("is_null", column).to_numpy(zero_copy_only=False)
    return pa.array(decided == decisive, mask=missing | (unknown & ~decided))


def _aggregate(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    """AGGREGATE and REDUCE: the arrays with most elements first, so that those with elements left are always the first."""
    column, result = arguments
    offsets, inner = elements(column)
    sizes = np.diff(offsets)
    order = np.argsort(-sizes, kind="stable")
    result, sizes, starts = result.take(pa.array(order)), sizes[order], offsets[:-1][order]
    finished: list[Array] = []
    for position in range(int(sizes.max(initial=0))):
        left = int(np.searchsorted(-sizes, -position, side="left"))
        finished.append(result[left:])
        variables = [result[:left], inner.take(pa.array(starts[:left] + position))]
        result = bodies[0](order[:left], variables)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    result = pa.concat_arrays([result, *reversed(finished)]).take(pa.array(places))
    known = kernel("is_valid", column).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(known)
    if len(bodies) == 2:
        result = bodies[1](rows, [result.take(pa.array(rows))])
        return result if known.all() else result.take(pa.array(np.cumsum(known) - 1, mask=~known))
    return result if known.all() else result.take(pa.array(np.arange(len(known)), mask=~known))


def _zip_with(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    """ZIP_WITH: the shorter array is as if it ended with NULLs."""
    known = np.logical_and(*(kernel("is_valid", column).to_numpy(zero_copy_only=False) for column in arguments))
    parts = [elements(column) for column in arguments]
    sizes = np.where(known, np.maximum(*(np.diff(offsets) for offsets, _ in parts)), 0)
    made = offsets_of(sizes)
    rows = owners(made)
    within = np.arange(len(rows)) - made[rows]
    variables = []
    for offsets, inner in parts:
        beyond = within >= np.diff(offsets)[rows]
        variables.append(inner.take(pa.array(np.where(beyond, 0, offsets[rows] + within), mask=beyond)))
    return list_array(dtype, made, bodies[0](rows, variables), known)


def _sort(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    """ARRAY_SORT by a comparator: a merge sort of all arrays at once, in which an element's place in the other run is found
    by binary search. It is stable, as Java's."""
    (column,) = arguments
    offsets, inner = elements(column)
    rows = owners(offsets)
    place = np.arange(len(inner))
    order = place.copy()
    within, sizes = place - offsets[rows], np.diff(offsets)[rows]
    compare = partial(_compare, bodies[0], inner, rows)
    width, longest = 1, int(np.diff(offsets).max(initial=0))
    while width < longest:
        in_left = (within // width) % 2 == 0
        run = within - within % (2 * width)
        other = np.where(in_left, run + width, run)
        low = np.minimum(other, sizes)
        high = np.minimum(other + width, sizes)
        begin = low.copy()
        while (active := np.flatnonzero(low < high)).size:
            middle = (low[active] + high[active]) // 2
            there, here = order[offsets[rows[active]] + middle], order[active]
            is_left = in_left[active]
            # An element of the left run comes before equal ones of the right run.
            sign = compare(np.where(is_left, there, here), np.where(is_left, here, there))
            before = np.where(is_left, sign < 0, sign >= 0)
            low[active[before]] = middle[before] + 1
            high[active[~before]] = middle[~before]
        target = offsets[rows] + run + (within - np.where(in_left, run, run + width)) + (low - begin)
        merged = np.full(len(order), -1, np.int64)
        merged[target] = order
        if (merged < 0).any():
            raise EvaluationError("array_sort: the lambda contradicts itself: it must order all elements in one way")
        order, width = merged, 2 * width
    return list_array(dtype, offsets, inner.take(pa.array(order)), valid_mask(column))


def _compare(body: Body, inner: Array, rows: Numbers, left: Numbers, right: Numbers) -> Numbers:
    sign = body(rows[left], [inner.take(pa.array(left)), inner.take(pa.array(right))])
    if sign.null_count:
        raise EvaluationError("array_sort: the lambda returned NULL; make it return 0 where elements are equal")
    return numbers(sign)


def _entries(column: Array) -> tuple[Numbers, Numbers, Array, list[Array]]:
    """The offsets, rows, entries, keys and values of maps."""
    offsets, inner = elements(column)
    return offsets, owners(offsets), inner, fields(inner)


def _map_filter(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    _, rows, inner, parts = _entries(arguments[0])
    return _kept(arguments[0], rows, inner, bodies[0](rows, parts), dtype)


def _transform_values(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    offsets, rows, inner, parts = _entries(arguments[0])
    made = struct_array(entry_type(dtype), [parts[0], bodies[0](rows, parts)], len(inner), None)
    return list_array(dtype, offsets, made, valid_mask(arguments[0]))


def _transform_keys(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    offsets, rows, _, parts = _entries(arguments[0])
    return map_column(dtype, offsets, bodies[0](rows, parts), parts[1], valid_mask(arguments[0]))


def _map_zip_with(arguments: Sequence[Array], bodies: Sequence[Body], dtype: pa.DataType) -> Array:
    """MAP_ZIP_WITH: the keys of the first map, then the others of the second; a value that is missing is NULL."""
    known = np.logical_and(*(kernel("is_valid", column).to_numpy(zero_copy_only=False) for column in arguments))
    rows, keys, values, places = [], [], [], []
    for column in arguments:
        _, owner, _, parts = _entries(column)
        chosen = np.flatnonzero(known[owner])
        rows.append(owner[chosen])
        keys.append(parts[0].take(pa.array(chosen)))
        values.append(parts[1].take(pa.array(chosen)))
    key, row = pa.concat_arrays(keys), np.concatenate(rows)
    codes, border = ranks(key), len(rows[0])
    first = first_of_each(row, codes)
    first = first[np.argsort(row[first], kind="stable")]
    pair = row * (int(codes.max(initial=0)) + 1) + codes
    for side in (slice(0, border), slice(border, None)):
        order = np.argsort(pair[side], kind="stable")
        ordered = pair[side][order]
        at = np.minimum(np.searchsorted(ordered, pair[first]), max(len(ordered) - 1, 0))
        found = ordered[at] == pair[first] if len(ordered) else np.zeros(len(first), np.bool_)
        places.append(pa.array(order[at] if len(ordered) else np.zeros(len(first), np.int64), mask=~found))
    key = key.take(pa.array(first))
    made = bodies[0](row[first], [key, *(value.take(place) for value, place in zip(values, places, strict=True))])
    entries = struct_array(entry_type(dtype), [key, made], len(key), None)
    return list_array(dtype, offsets_of(np.bincount(row[first], minlength=len(known))), entries, known)


HIGHER_ORDER: dict[str, HigherOrder] = {
    "transform": _transform,
    "filter": _filter,
    "exists": partial(_quantified, True),
    "forall": partial(_quantified, False),
    "aggregate": _aggregate,
    "zip_with": _zip_with,
    "array_sort": _sort,
    "map_filter": _map_filter,
    "transform_keys": _transform_keys,
    "transform_values": _transform_values,
    "map_zip_with": _map_zip_with,
}

FAILING = frozenset({"array_sort", "transform_keys"})
"""Functions that may fail although their lambdas do not."""
