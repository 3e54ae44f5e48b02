"""Ranks of values in Spark's order, so that elements of any type are compared, sorted and searched as integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.operators.scalar.arrays import Array, Numbers, kernel, numbers
from sash.operators.scalar.comparisons import ordered_bytes
from sash.plan.types import is_nested
from sash.state.ordering import ordered_bits

NO_VALUE = -1
"""The rank of NULL."""


def ranks(values: Array) -> Numbers:
    """The rank of each value among the distinct ones: equal for equal values, in Spark's order; -1 for NULL.

    NaN equals itself and is above all numbers, and -0.0 equals 0.0.

    >>> ranks(pa.array([2.5, None, float("nan"), -0.0, 0.0])).tolist()
    [1, -1, 2, 0, 0]
    """
    if not len(values) or pa.types.is_null(values.type):
        return np.full(len(values), NO_VALUE, np.int64)
    if is_nested(values.type):
        values = ordered_bytes(values)
    known = kernel("is_valid", values).to_numpy(zero_copy_only=False)
    result = np.full(len(values), NO_VALUE, np.int64)
    if pa.types.is_boolean(values.type):
        result[known] = numbers(values)[known].astype(np.int64)
    elif pa.types.is_string(values.type) or pa.types.is_binary(values.type) or pa.types.is_decimal(values.type):
        encoded = values.dictionary_encode()
        order = kernel("array_sort_indices", encoded.dictionary).to_numpy(zero_copy_only=False)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        result[known] = places[numbers(encoded.indices)[known]]
    else:
        _, found = np.unique(ordered_bits(values)[known], return_inverse=True)
        result[known] = found.reshape(-1)
    return result


def positive_zeros(values: Array) -> Array:
    """0.0 for -0.0, as sets of values have it."""
    return kernel("add", values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values


def owners(offsets: Numbers) -> Numbers:
    """The row of each element of a column of arrays."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def offsets_of(counts: Numbers) -> Numbers:
    """The offsets of arrays with these numbers of elements."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def first_of_each(rows: Numbers, codes: Numbers) -> Numbers:
    """The positions of the first element of each distinct pair of row and code, in order."""
    if not len(rows):
        return np.zeros(0, np.int64)
    width = int(codes.max()) - NO_VALUE + 1
    _, places = np.unique(rows * width + (codes - NO_VALUE), return_index=True)
    places.sort()
    return np.asarray(places)
