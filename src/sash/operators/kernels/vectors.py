"""Rows in vectors per key code: the slots of a key's rows are contiguous, so that a probe is a copy.

A side's rows are an array of records of three words by slot: position in its vector, code, expiration time. The vectors
are an array of records of six words by code, for the two sides each: start in the pool, length, capacity. A removed row is
replaced by the last one. A full vector moves to a block of the pool twice as large, and one that is a quarter full to a
block half as large; free blocks of one size are linked.
"""

from __future__ import annotations

import numpy as np

from sash.state.jit import AHEAD, inlined, kernel, prefetch
from sash.state.memory import Ints

ROW = 3
PLACE, CODE, EXPIRY = range(ROW)
VECTOR = 6
START, LENGTH, CAPACITY = 0, 2, 4
"""Fields of a vector's record, with the values of the two sides next to each other."""

MARKS = 64
"""Marks of a pool: its used length, then the first free block (start + 1) of each size."""

SMALLEST = 4
_USED = 0


@kernel
def fill(rows: Ints, slots: Ints, codes: Ints, exp: Ints) -> None:
    """Write the code and the expiry of new rows."""
    for index in range(len(slots)):
        row = ROW * slots[index]
        rows[row + CODE] = codes[index]
        rows[row + EXPIRY] = exp[index]


@inlined
def move(vector: int, capacity: int, vectors: Ints, pool: Ints, marks: Ints) -> bool:
    """Move a vector to a block of another size (a power of two, or 0 if it is empty); False if the pool is full."""
    start = 0
    if capacity > 0:
        kind = _kind(capacity)
        start = marks[kind] - 1
        if start >= 0:
            marks[kind] = pool[start]
        elif marks[_USED] + capacity <= len(pool):
            start = marks[_USED]
            marks[_USED] += capacity
        else:
            return False
    old, before = vectors[vector + START], vectors[vector + CAPACITY]
    for index in range(vectors[vector + LENGTH]):
        pool[start + index] = pool[old + index]
    if before > 0:
        kind = _kind(before)
        pool[old] = marks[kind]
        marks[kind] = old + 1
    vectors[vector + START] = start
    vectors[vector + CAPACITY] = capacity
    return True


@inlined
def _kind(capacity: int) -> int:
    """The mark of the free blocks of this size."""
    kind = 1
    while capacity > SMALLEST:
        capacity //= 2
        kind += 1
    return kind


@inlined
def put(rows: Ints, slot: int, vector: int, vectors: Ints, pool: Ints) -> None:
    """Add a row to a vector with free capacity."""
    length = vectors[vector + LENGTH]
    pool[vectors[vector + START] + length] = slot
    rows[ROW * slot + PLACE] = length
    vectors[vector + LENGTH] = length + 1


@inlined
def take_out(rows: Ints, slot: int, vector: int, vectors: Ints, pool: Ints) -> None:
    """Remove a row from its vector."""
    length, start, position = vectors[vector + LENGTH] - 1, vectors[vector + START], rows[ROW * slot + PLACE]
    last = pool[start + length]
    pool[start + position] = last
    rows[ROW * last + PLACE] = position
    vectors[vector + LENGTH] = length


@inlined
def look_ahead(event: int, slots: Ints, rows: Ints, vectors: Ints, pool: Ints, side: int) -> None:
    """Prefetch the data of later events: the row, then its key's record, then its vectors, then the last row."""
    if event + 2 * AHEAD < len(slots):
        prefetch(rows, ROW * slots[event + 2 * AHEAD])
    if event + AHEAD < len(slots):
        prefetch(vectors, VECTOR * max(rows[ROW * slots[event + AHEAD] + CODE], 0))
    if event + AHEAD // 2 < len(slots):
        vector = VECTOR * max(rows[ROW * slots[event + AHEAD // 2] + CODE], 0) + side
        prefetch(pool, vectors[vector + START] + max(vectors[vector + LENGTH] - 1, 0))
        prefetch(pool, vectors[vector + START + 1 - 2 * side])
    if event + AHEAD // 4 < len(slots):
        vector = VECTOR * max(rows[ROW * slots[event + AHEAD // 4] + CODE], 0) + side
        if vectors[vector + LENGTH] > 0:
            prefetch(rows, ROW * pool[vectors[vector + START] + vectors[vector + LENGTH] - 1])


@kernel
def dead_codes(empty: Ints, vectors: Ints) -> Ints:
    """The codes that had no rows on either side at some instant and have none now, each once."""
    dead = np.empty(len(empty), np.int64)
    found = 0
    for code in empty:
        vector = VECTOR * code
        if vectors[vector + LENGTH] == 0 and vectors[vector + LENGTH + 1] == 0 and vectors[vector + START] >= 0:
            vectors[vector + START] = -1
            dead[found] = code
            found += 1
    for index in range(found):
        vectors[VECTOR * dead[index] + START] = 0
    return dead[:found].copy()
