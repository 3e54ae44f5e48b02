"""The loop of the symmetric window hash join: every event of one side probes the vectors of the other."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.vectors import (
    CAPACITY,
    CODE,
    EXPIRY,
    LENGTH,
    ROW,
    SMALLEST,
    START,
    VECTOR,
    look_ahead,
    move,
    put,
    take_out,
)
from sash.state.changes import Signs
from sash.state.jit import grown, inlined, kernel, uncounted
from sash.state.memory import Ints

LEFT, RIGHT, _PAIRS, _EMPTY, _WANTED, _FULL = range(6)


@inlined
def _pair(
    explicit: bool, slot: int, own: Ints, start: int, matches: int, pool: Ints, other: Ints,
    count: int, out_own: Ints, out_other: Ints, out_exp: Ints,
) -> None:  # fmt: skip
    """Write one pair for each row of a vector; retracted rows have no expiration time."""
    for index in range(matches):
        out_own[count + index] = slot
        out_other[count + index] = pool[start + index]
    if not explicit:
        expiry = own[ROW * slot + EXPIRY]
        for index in range(matches):
            out_exp[count + index] = min(expiry, other[ROW * pool[start + index] + EXPIRY])


@kernel
def advance(
    explicit: bool, left_ts: Ints, left_sign: Signs, left_slots: Ints, left_rows: Ints,
    right_ts: Ints, right_sign: Signs, right_slots: Ints, right_rows: Ints,
    vectors: Ints, pool: Ints, marks: Ints, begun: Ints,
) -> tuple[Ints, Ints, Signs, Ints, Ints, Ints]:  # fmt: skip
    """Apply the events of both sides in order of (time, ends first), from `begun` on, until they end or the pool is full.

    Returns the pairs as (times, expiration times, signs, left slots, right slots), and the codes that had no rows left at
    some instant; sets `begun` to the events done. If the output is not explicit, ends produce no pairs.
    """
    n, m = len(left_ts), len(right_ts)
    size = n + m + 16
    ts = np.empty(size, np.int64)
    exp = np.empty(size, np.int64)
    sign = np.empty(size, np.int8)
    left = np.empty(size, np.int64)
    right = np.empty(size, np.int64)
    empty = np.empty(n + m, np.int64)
    done = np.zeros(6, np.int64)
    done[LEFT], done[RIGHT] = begun[LEFT], begun[RIGHT]
    while (done[LEFT] < n or done[RIGHT] < m) and done[_FULL] == 0:
        # Outputs grow here: arrays replaced inside the loop would be reference-counted at every event.
        size = done[_PAIRS] + done[_WANTED]
        ts, exp, sign, left, right = (
            grown(ts, size), grown(exp, size), grown(sign, size), grown(left, size), grown(right, size)
        )  # fmt: skip
        _run(
            explicit, left_ts, left_sign, left_slots, left_rows, right_ts, right_sign, right_slots, right_rows,
            vectors, pool, marks, done, ts, exp, sign, left, right, empty,
        )  # fmt: skip
    begun[LEFT], begun[RIGHT] = done[LEFT], done[RIGHT]
    count = done[_PAIRS]
    return ts[:count], exp[:count], sign[:count], left[:count], right[:count], empty[: done[_EMPTY]]


@uncounted
def _run(
    explicit: bool, left_ts: Ints, left_sign: Signs, left_slots: Ints, left_rows: Ints,
    right_ts: Ints, right_sign: Signs, right_slots: Ints, right_rows: Ints, vectors: Ints, pool: Ints, marks: Ints,
    done: Ints, out_ts: Ints, out_exp: Ints, out_sign: Signs, out_left: Ints, out_right: Ints, empty: Ints,
) -> None:  # fmt: skip
    """Continue from `done` until the events end or the output or the pool is full."""
    n, m, room = len(left_ts), len(right_ts), len(out_ts)
    i, j, count, empties = done[LEFT], done[RIGHT], done[_PAIRS], done[_EMPTY]
    done[_WANTED] = 0
    while i < n or j < m:
        if i >= n:
            side = 1
        elif j >= m or left_ts[i] < right_ts[j]:
            side = 0
        else:
            side = 0 if left_ts[i] == right_ts[j] and left_sign[i] <= right_sign[j] else 1
        if side == 0:
            now, sign, slot = left_ts[i], left_sign[i], left_slots[i]
            vector = VECTOR * left_rows[ROW * slot + CODE]
        else:
            now, sign, slot = right_ts[j], right_sign[j], right_slots[j]
            vector = VECTOR * right_rows[ROW * slot + CODE] + 1
        met = vector + 1 - 2 * side
        matches = vectors[met + LENGTH] if explicit or sign > 0 else 0
        if count + matches > room:
            done[_WANTED] = matches
            break
        length, capacity = vectors[vector + LENGTH], vectors[vector + CAPACITY]
        if sign > 0 and length == capacity and not move(vector, max(SMALLEST, 2 * length), vectors, pool, marks):
            done[_FULL] = 1
            break
        for index in range(count, count + matches):
            out_ts[index] = now
            out_sign[index] = sign
        start = vectors[met + START]
        if side == 0:
            look_ahead(i, left_slots, left_rows, vectors, pool, 0)
            if sign > 0:
                put(left_rows, slot, vector, vectors, pool)
            else:
                take_out(left_rows, slot, vector, vectors, pool)
            _pair(explicit, slot, left_rows, start, matches, pool, right_rows, count, out_left, out_right, out_exp)
            i += 1
        else:
            look_ahead(j, right_slots, right_rows, vectors, pool, 1)
            if sign > 0:
                put(right_rows, slot, vector, vectors, pool)
            else:
                take_out(right_rows, slot, vector, vectors, pool)
            _pair(explicit, slot, right_rows, start, matches, pool, left_rows, count, out_right, out_left, out_exp)
            j += 1
        count += matches
        if sign < 0 and vectors[vector + LENGTH] == 0 and vectors[met + LENGTH] == 0:
            empty[empties] = vector // VECTOR
            empties += 1
        if sign < 0 and (length == 1 or 4 * (length - 1) <= capacity > SMALLEST):
            move(vector, capacity // 2 if length > 1 else 0, vectors, pool, marks)
    done[LEFT], done[RIGHT], done[_PAIRS], done[_EMPTY] = i, j, count, empties
