"""The interner against a dictionary: equal keys share a code while they live, codes of dead keys are used again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("intern"), st.lists(st.integers(0, 40), max_size=30)),
        st.tuples(st.just("forget"), st.lists(st.integers(0, 40), max_size=30)),
    ),
    max_size=12,
)


@settings(max_examples=100)
@given(STEPS, st.integers(1, 50))
def test_oracle_interner(steps: list[tuple[str, list[int]]], spread: int) -> None:
    memory = HeapMemory()
    codes: dict[int, int] = {}
    for action, keys in steps:
        interner = Interner(memory)
        if action == "intern":
            low, high = np.array(keys, np.uint64) * np.uint64(spread), np.zeros(len(keys), np.uint64)
            found, fresh = interner.intern(low, high)
            assert [keys[position] for position in fresh] == list(dict.fromkeys(k for k in keys if k not in codes))
            codes.update(zip(keys, found.tolist(), strict=True))
            assert found.tolist() == [codes[key] for key in keys]
        else:
            dead = [key for key in dict.fromkeys(keys) if key in codes]
            interner.forget(np.array([codes.pop(key) for key in dead], np.int64))
        assert len(set(codes.values())) == len(codes) == interner.live
        assert all(code < interner.capacity for code in codes.values())
        every = np.arange(41).astype(np.uint64) * np.uint64(spread)
        assert interner.find(every, np.zeros(41, np.uint64)).tolist() == [codes.get(key, -1) for key in range(41)]


def test_many_keys_come_go_and_come_again() -> None:
    interner = Interner(HeapMemory())
    high = np.zeros(50_000, np.uint64)
    low = np.arange(50_000).astype(np.uint64)
    codes, fresh = interner.intern(low, high)
    assert len(fresh) == len(set(codes.tolist())) == 50_000
    interner.forget(codes[::2])
    assert interner.live == 25_000
    again, fresh = interner.intern(low, high)
    assert fresh.tolist() == list(range(0, 50_000, 2))
    assert (again[1::2] == codes[1::2]).all()
    assert interner.capacity <= 100_000


COLUMNS = [
    pa.array([1, None, 1, 0, None], pa.int32()),
    pa.array([True, None, True, False, None]),
    pa.array([0.0, None, -0.0, 1.5, None]),
    pa.array([float("nan"), None, float("nan"), 0.0, None], pa.float32()),
    pa.array(["", None, "", "a", None]),
    pa.array([b"\0", None, b"\0", b"\0\0", None], pa.binary()),
    pa.array([1, None, 1, -1, None], pa.decimal128(20, 3)),
    pa.array([1, None, 1, 2, None], pa.timestamp("us")),
    pa.array([1, None, 1, 2, None], pa.date32()),
    pa.array([None] * 5, pa.null()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_keys_are_equal_exactly_when_the_values_are(column: pa.Array) -> None:
    """NULL equals NULL and nothing else, NaN equals NaN, -0.0 equals 0.0; alone, beside others and in a slice."""
    null = pa.types.is_null(column.type)
    padded = pa.concat_arrays([column, column]).slice(5)
    for columns in ([column], [column, column], [padded], [pa.array(["x"] * 5), padded]):
        keys = list(zip(*(half.tolist() for half in hash_rows(columns, 5)), strict=True))
        assert keys[0] == keys[2]
        assert keys[1] == keys[4]
        assert len(set(keys)) == (1 if null else 3)
    assert keys == list(zip(*(half.tolist() for half in hash_rows([pa.array(["x"] * 5), column], 5)), strict=True))
    assert hash_rows([column.slice(0, 0)], 0)[0].tolist() == []
    assert hash_rows([pa.array([], column.type), pa.array([], column.type)], 0)[0].tolist() == []
    mask = any_null([pa.array([1, 2, 3, 4, 5]), column])
    assert mask is not None
    assert mask.tolist() == ([True] * 5 if null else [False, True, False, False, True])


def test_rows_of_no_columns_are_equal() -> None:
    low, high = hash_rows([], 3)
    assert len(set(low.tolist())) == len(set(high.tolist())) == 1
    assert any_null([]) is None


def test_where_one_column_ends_and_the_next_begins_matters() -> None:
    low, high = hash_rows([pa.array(["ab", "a"]), pa.array(["c", "bc"])], 2)
    assert (low[0], high[0]) != (low[1], high[1])
