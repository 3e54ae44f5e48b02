"""Encoded rows sort as the rows do, whatever the types, directions and places of NULL."""

from __future__ import annotations

import decimal
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.state.ordering import encode_order, order_rows, ordered_bits, turn_floats

COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(),
    pa.decimal128(38, 3): st.integers(-(10**37), 10**37).map(lambda n: decimal.Decimal(n).scaleb(-3)),
    pa.string(): st.text(alphabet="\0aé\uffff", max_size=4),
    pa.binary(): st.binary(max_size=4),
}


def encode(columns: list[pa.Array], descending: list[bool], nulls_first: list[bool]) -> list[bytes]:
    offsets, data = encode_order(columns, descending, nulls_first, len(columns[0]))
    return [data[start:stop].tobytes() for start, stop in itertools.pairwise(offsets)]


def compare(a: Any, b: Any, descending: bool, nulls_first: bool) -> int:
    if a is None or b is None:
        order = (a is None) - (b is None)
        return -order if nulls_first else order
    a, b = (value.encode() if isinstance(value, str) else value for value in (a, b))
    if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
        order = math.isnan(a) - math.isnan(b)
    else:
        order = (a > b) - (a < b)
    return -order if descending else order


@settings(max_examples=200)
@given(data=st.data())
def test_oracle_bytes_compare_as_rows(data: st.DataObject) -> None:
    dtypes = data.draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3))
    row = st.tuples(*(st.one_of(st.none(), COLUMNS[dtype]) for dtype in dtypes))
    rows = data.draw(st.lists(row, min_size=2, max_size=6))
    flags = st.lists(st.booleans(), min_size=len(dtypes), max_size=len(dtypes))
    descending, nulls_first = data.draw(flags), data.draw(flags)
    columns = [pa.array([r[index] for r in rows], dtype) for index, dtype in enumerate(dtypes)]
    # A slice of a longer array must do as well.
    columns = [pa.concat_arrays([column, column]).slice(len(rows)) for column in columns]
    encoded = encode(columns, descending, nulls_first)
    for a, one in zip(rows, encoded, strict=True):
        for b, two in zip(rows, encoded, strict=True):
            orders = (compare(x, y, d, n) for x, y, d, n in zip(a, b, descending, nulls_first, strict=True))
            expected = next((order for order in orders if order), 0)
            assert (one > two) - (one < two) == expected


@settings(max_examples=100)
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, 1, 2]), st.text("aé", max_size=2)), max_size=60)
)
def test_oracle_rows_of_one_instant_are_sorted_by_their_columns(rows: list[tuple[int, int | None, str]]) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    columns = [pa.array([row[1] for row in rows], pa.int64()), pa.array([row[2] for row in rows], pa.string())]
    order = order_rows(np.array([row[0] for row in rows], np.int64), columns)
    assert [rows[position] for position in order] == sorted(
        rows, key=lambda row: (row[0], row[1] or 0, row[2].encode())
    )
    assert sorted(order) == list(range(len(rows)))


def test_negative_zero_is_zero_and_nan_is_last() -> None:
    encoded = encode([pa.array([-math.inf, -0.0, 0.0, math.inf, math.nan, -math.nan])], [False], [True])
    assert encoded == sorted(encoded)
    assert encoded[1] == encoded[2]
    assert encoded[4] == encoded[5]


def test_ordered_bits_turn_back_into_doubles() -> None:
    column = pa.array([-1.5, 0.0, 2.5, math.inf])
    words = ordered_bits(column)
    assert (words[1:] > words[:-1]).all()
    assert turn_floats(words).view("float64").tolist() == column.to_pylist()


def test_strings_have_no_ordered_bits() -> None:
    with pytest.raises(TypeError, match="64 bits"):
        ordered_bits(pa.array(["a"]))
