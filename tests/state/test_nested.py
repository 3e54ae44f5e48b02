"""Arrays, structs and maps in the state: read back unchanged, hashed and ordered as SQL compares them."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash.state.hashing import hash_rows
from sash.state.memory import HeapMemory
from sash.state.nested import decode_values, encode_values
from sash.state.ordering import encode_order
from sash.state.rows import RowStore

STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.float64()))])
TYPES = [
    pa.list_(pa.int32()),
    pa.list_(pa.string()),
    pa.list_(pa.list_(pa.bool_())),
    pa.list_(pa.null()),
    pa.list_(pa.decimal128(20, 2)),
    STRUCT,
    pa.struct([]),
    pa.struct([("inner", pa.struct([("x", pa.date32()), ("y", pa.binary())]))]),
    pa.list_(STRUCT),
    pa.map_(pa.string(), pa.int64()),
    pa.map_(pa.int32(), pa.list_(pa.map_(pa.string(), pa.timestamp("us", "UTC")))),
]


def random_value(chance: random.Random, dtype: pa.DataType, *, nullable: bool = True) -> Any:
    if nullable and chance.random() < 0.2:
        return None
    if pa.types.is_map(dtype):
        keys = [random_value(chance, dtype.key_type, nullable=False) for _ in range(chance.randrange(4))]
        return [(key, random_value(chance, dtype.item_type)) for key in dict.fromkeys(keys)]
    if pa.types.is_list(dtype):
        return [random_value(chance, dtype.value_type) for _ in range(chance.randrange(4))]
    if pa.types.is_struct(dtype):
        return {field.name: random_value(chance, field.type) for field in dtype}
    if pa.types.is_null(dtype):
        return None
    if pa.types.is_boolean(dtype):
        return chance.random() < 0.5
    if pa.types.is_string(dtype):
        return chance.choice(["", "a", "a\0b", "ab", "ü"])
    if pa.types.is_binary(dtype):
        return chance.choice([b"", b"\0", b"\xff\0"])
    if pa.types.is_decimal(dtype):
        return Decimal(chance.randrange(-300, 300)) / 100
    if pa.types.is_floating(dtype):
        return chance.choice([0.0, -0.0, 1.5, -2.0, float("nan"), float("inf")])
    number = chance.randrange(-3, 4)
    return pa.scalar(number, pa.int32() if pa.types.is_date(dtype) else pa.int64()).cast(dtype).as_py()


def random_column(seed: int, dtype: pa.DataType, rows: int = 40) -> pa.Array:
    chance = random.Random(seed)
    return pa.array([random_value(chance, dtype) for _ in range(rows)], dtype).slice(3)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_values_are_read_back_unchanged(dtype: pa.DataType) -> None:
    column = random_column(1, dtype)
    offsets, data = encode_values(column)
    decoded, ends = decode_values(dtype, offsets[:-1], data)
    decoded.validate(full=True)
    assert repr(decoded.to_pylist()) == repr(column.to_pylist())
    assert ends.tolist() == offsets[1:].tolist()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_row_store_keeps_them(dtype: pa.DataType) -> None:
    store = RowStore(HeapMemory(), [dtype])
    first, second = random_column(2, dtype), random_column(3, dtype)
    slots = np.arange(len(first))
    store.put(slots, [first])
    store.free(slots[::2])
    store.put(slots[::2], [second.take(pa.array(slots[::2]))])
    expected = pa.array([(second if slot % 2 == 0 else first)[slot].as_py() for slot in slots], dtype)
    assert repr(store.take(slots[::-1])[0].to_pylist()) == repr(expected.to_pylist()[::-1])


def compare(one: Any, other: Any) -> int:
    """Spark's order: NULL first, NaN last, -0.0 equals 0.0, arrays and structs from left to right."""
    if one is None or other is None:
        return (one is not None) - (other is not None)
    if isinstance(one, dict):
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list):
        for a, b in zip(one, other, strict=False):
            if found := compare(a, b):
                return found
        return len(one) - len(other)
    if isinstance(one, float):
        one, other = ((math.isnan(value), 0.0 if math.isnan(value) else value) for value in (one, other))
    if isinstance(one, str):
        one, other = one.encode(), other.encode()
    return int(one > other) - int(one < other)


ORDERED = [dtype for dtype in TYPES if not pa.types.is_map(dtype)]


@pytest.mark.parametrize("dtype", ORDERED, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_byte_strings_are_in_the_order_of_the_values(dtype: pa.DataType, descending: bool) -> None:
    column = random_column(4, dtype)
    offsets, data = encode_order([column], [descending], [not descending], len(column))
    strings = [data[offsets[row] : offsets[row + 1]].tobytes() for row in range(len(column))]
    low, high = hash_rows([column], len(column))
    hashes = list(zip(low.tolist(), high.tolist(), strict=True))
    values = column.to_pylist()
    order = sorted(range(len(values)), key=strings.__getitem__)
    wanted = sorted(range(len(values)), key=cmp_to_key(lambda a, b: compare(values[a], values[b])), reverse=descending)
    assert all(compare(values[a], values[b]) == 0 for a, b in zip(order, wanted, strict=True))
    for a in range(len(values)):
        for b in range(len(values)):
            assert (strings[a] == strings[b]) == (compare(values[a], values[b]) == 0) == (hashes[a] == hashes[b])


def test_the_order_of_a_maps_entries_does_not_matter() -> None:
    dtype = pa.map_(pa.string(), pa.int32())
    column = pa.array([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 2), ("b", 1)], [("a", 1)], None, []], dtype)
    low, high = hash_rows([column], 6)
    assert (low[0], high[0]) == (low[1], high[1])
    assert len(set(zip(low.tolist(), high.tolist(), strict=True))) == 5
    offsets, data = encode_order([column], [False], [True], 6)
    strings = [data[offsets[row] : offsets[row + 1]].tobytes() for row in range(6)]
    assert strings[0] == strings[1]
    assert len(set(strings)) == 5


def test_null_struct_differs_from_struct_of_nulls() -> None:
    column = pa.array([None, {"a": None}, {"a": 1}], pa.struct([("a", pa.int32())]))
    low, _ = hash_rows([column], 3)
    assert len(set(low.tolist())) == 3
