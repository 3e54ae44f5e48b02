"""Vectors of rows by key against plain lists: rows come and go, vectors grow, shrink, and take each other's blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.kernels.vectors import (
    CAPACITY,
    CODE,
    LENGTH,
    MARKS,
    ROW,
    SMALLEST,
    START,
    VECTOR,
    dead_codes,
    fill,
    move,
    put,
    take_out,
)

KEYS, SLOTS, ROOM = 3, 40, 512


class Vectors:
    """The vectors of one side, in a pool."""

    def __init__(self) -> None:
        self.rows = np.zeros(ROW * SLOTS, np.int64)
        self.vectors = np.zeros(VECTOR * KEYS, np.int64)
        self.pool = np.zeros(ROOM, np.int64)
        self.marks = np.zeros(MARKS, np.int64)

    def add(self, slot: int, code: int) -> None:
        fill(self.rows, np.array([slot]), np.array([code]), np.array([0]))
        vector = VECTOR * code
        length = int(self.vectors[vector + LENGTH])
        if length == self.vectors[vector + CAPACITY]:
            assert move(vector, max(SMALLEST, 2 * length), self.vectors, self.pool, self.marks)
        put(self.rows, slot, vector, self.vectors, self.pool)

    def remove(self, slot: int) -> None:
        vector = VECTOR * int(self.rows[ROW * slot + CODE])
        take_out(self.rows, slot, vector, self.vectors, self.pool)
        length, capacity = self.vectors[vector + LENGTH], self.vectors[vector + CAPACITY]
        if length == 0 or 4 * length <= capacity > SMALLEST:
            assert move(vector, int(capacity) // 2 if length else 0, self.vectors, self.pool, self.marks)

    def slots(self, code: int) -> list[int]:
        start, length = (int(self.vectors[VECTOR * code + word]) for word in (START, LENGTH))
        return sorted(self.pool[start : start + length].tolist())


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, KEYS - 1)), max_size=300))
def test_a_vector_has_the_slots_of_its_key(steps: list[tuple[int, int]]) -> None:
    vectors = Vectors()
    expected: dict[int, int] = {}
    for slot, code in steps:
        if slot in expected:
            vectors.remove(slot)
            del expected[slot]
        else:
            vectors.add(slot, code)
            expected[slot] = code
        for each in range(KEYS):
            assert vectors.slots(each) == sorted(slot for slot, code in expected.items() if code == each)
            capacity, length = vectors.vectors[VECTOR * each + CAPACITY], vectors.vectors[VECTOR * each + LENGTH]
            assert capacity <= max(SMALLEST, 4 * length), "a vector takes no more than four times its rows"


def test_without_room_in_the_pool_a_vector_stays_as_it_is() -> None:
    vectors = Vectors()
    for slot in range(SMALLEST):
        vectors.add(slot, 0)
    full = np.zeros(SMALLEST, np.int64)
    full[:] = vectors.pool[:SMALLEST]
    assert not move(0, 2 * SMALLEST, vectors.vectors, full, vectors.marks)
    assert vectors.slots(0) == list(range(SMALLEST))


def test_codes_without_rows_are_told_once() -> None:
    vectors = Vectors()
    vectors.add(7, 1)
    assert dead_codes(np.array([0, 1, 0]), vectors.vectors).tolist() == [0]
    vectors.remove(7)
    assert dead_codes(np.array([1, 1]), vectors.vectors).tolist() == [1]
