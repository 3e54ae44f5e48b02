"""The row store gives back what was put in, for every type, in any order, after any number of turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.state.memory import HeapMemory, MappedMemory
from sash.state.rows import RowStore

VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, None, False]),
    (pa.int8(), [1, None, -128]),
    (pa.int64(), [2**62, None, -1]),
    (pa.float32(), [0.5, None, -0.25]),
    (pa.float64(), [1e300, None, -0.5]),
    (pa.string(), ["", None, "grün"]),
    (pa.binary(), [b"\0", None, b""]),
    (pa.decimal128(38, 2), [10**30, None, -1]),
    (pa.date32(), [1, None, -1]),
    (pa.timestamp("us"), [1, None, -1]),
    (pa.null(), [None, None, None]),
]


@pytest.mark.parametrize(
    ("dtype", "values"), VALUES, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_values_of_every_type_come_back(dtype: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, dtype)
    memory = HeapMemory()
    RowStore(memory, [dtype, dtype]).put(np.array([2000, 0, 7]), [column, pa.concat_arrays([column, column]).slice(3)])
    again = RowStore(memory, [dtype, dtype])
    for found in again.take(np.array([7, 2000, 0, 7])):
        assert found.type == dtype
        assert found.to_pylist() == column.take(pa.array([2, 0, 1, 2])).to_pylist()
        found.validate(full=True)
    assert [len(found) for found in again.take(np.empty(0, np.int64))] == [0, 0]
    again.put(np.empty(0, np.int64), [column.slice(0, 0), pa.array([], dtype)])
    again.free(np.array([7, 0]))
    assert again.take(np.array([2000]))[0].to_pylist() == column.slice(0, 1).to_pylist()


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 30), unique=True, max_size=20),
            st.lists(st.one_of(st.none(), st.text(max_size=5), st.just("long" * 200)), min_size=20, max_size=20),
            st.sets(st.integers(0, 30)),
        ),
        max_size=25,
    )
)
def test_oracle_bytes_survive_freeing_and_compaction(steps: list[tuple[list[int], list[str | None], set[int]]]) -> None:
    memory = HeapMemory()
    expected: dict[int, str | None] = {}
    for slots, texts, gone in steps:
        store = RowStore(memory, [pa.string()])
        free = [slot for slot in slots if slot not in expected]
        store.put(np.array(free, np.int64), [pa.array(texts[: len(free)], pa.string())])
        expected.update(zip(free, texts, strict=False))
        held = np.array(list(expected), np.int64)
        assert store.take(held)[0].to_pylist() == list(expected.values())
        dead = [slot for slot in gone if slot in expected]
        store.free(np.array(dead, np.int64))
        for slot in dead:
            del expected[slot]


def test_the_heap_of_bytes_stays_in_proportion_to_what_lives() -> None:
    memory = HeapMemory()
    store = RowStore(memory, [pa.string()])
    slots = np.arange(100)
    for turn in range(200):
        store.put(slots, [pa.array([f"{turn:100}"] * 100)])
        store.free(slots)
    assert memory.nbytes < 500_000


def test_mapped_memory_is_found_again(tmp_path: Path) -> None:
    slots = np.arange(3000)
    texts, numbers = [f"row {n}" for n in range(3000)], list(range(3000))
    store = RowStore(MappedMemory(tmp_path), [pa.string(), pa.int64()])
    store.put(slots, [pa.array(texts), pa.array(numbers)])
    again = RowStore(MappedMemory(tmp_path), [pa.string(), pa.int64()])
    assert [column.to_pylist() for column in again.take(slots)] == [texts, numbers]
