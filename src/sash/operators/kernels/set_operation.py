"""The loop of the set operations: counts per value and side, compared before and after every instant."""

from __future__ import annotations

import numpy as np

from sash.state.changes import Signs
from sash.state.jit import AHEAD, grown, inlined, kernel, prefetch, uncounted
from sash.state.memory import Ints

DISTINCT, EXCEPT, EXCEPT_ALL, INTERSECT, INTERSECT_ALL, SEMI, ANTI = range(7)
STRIDE = 4
"""Per code: left rows, right rows, whether the value was touched at this instant, and one unused word."""
_LEFT, _RIGHT, _CHANGES, _EMPTY, _PENDING, _NOW, _WANTED = range(7)


@inlined
def _copies(mode: int, left: int, right: int) -> int:
    """The number of copies in the output of a value with these counts."""
    if mode == EXCEPT_ALL:
        return max(left - right, 0)
    if mode == INTERSECT_ALL:
        return min(left, right)
    if mode == SEMI:
        return left if right > 0 else 0
    if mode == ANTI:
        return left if right == 0 else 0
    if mode == DISTINCT:
        return min(left, 1)
    return 1 if left > 0 and (right > 0) == (mode == INTERSECT) else 0


@inlined
def _touch(mode: int, counts: Ints, position: int, touched: Ints, before: Ints, pending: int) -> int:
    """Record the copies of a value in the output before this instant; returns the number of recorded values."""
    if counts[position + 2] == 0:
        counts[position + 2] = 1
        touched[pending] = position
        before[pending] = _copies(mode, counts[position], counts[position + 1])
        pending += 1
    return pending


@kernel
def advance(
    mode: int, left_ts: Ints, left_sign: Signs, left_codes: Ints,
    right_ts: Ints, right_sign: Signs, right_codes: Ints, counts: Ints,
) -> tuple[Ints, Signs, Ints, Ints]:  # fmt: skip
    """Apply the events of both sides; returns the changes (times, signs, codes) and the codes without rows."""
    n, m = len(left_ts), len(right_ts)
    ts = np.empty(n + m + 16, np.int64)
    sign = np.empty(n + m + 16, np.int8)
    codes = np.empty(n + m + 16, np.int64)
    touched = np.empty(n + m, np.int64)
    before = np.empty(n + m, np.int64)
    empty = np.empty(n + m, np.int64)
    done = np.zeros(7, np.int64)
    while done[_LEFT] < n or done[_RIGHT] < m or done[_WANTED] > 0:
        # Outputs grow here: arrays replaced inside the loop would be reference-counted at every event.
        size = done[_CHANGES] + done[_WANTED]
        ts, sign, codes = grown(ts, size), grown(sign, size), grown(codes, size)
        _run(
            mode, left_ts, left_sign, left_codes, right_ts, right_sign, right_codes, counts, done,
            ts, sign, codes, touched, before, empty,
        )  # fmt: skip
    count = done[_CHANGES]
    return ts[:count], sign[:count], codes[:count], _dead(empty[: done[_EMPTY]], counts)


@uncounted
def _run(
    mode: int, left_ts: Ints, left_sign: Signs, left_codes: Ints, right_ts: Ints, right_sign: Signs, right_codes: Ints,
    counts: Ints, done: Ints, out_ts: Ints, out_sign: Signs, out_codes: Ints, touched: Ints, before: Ints, empty: Ints,
) -> None:  # fmt: skip
    """Continue from `done` until the events end or the output is full, which leaves the last instant's changes pending."""
    n, m = len(left_ts), len(right_ts)
    i, j, count, empties = done[_LEFT], done[_RIGHT], done[_CHANGES], done[_EMPTY]
    pending, now = done[_PENDING], done[_NOW]
    while i < n or j < m or pending > 0:
        if pending == 0:
            now = left_ts[i] if j >= m or (i < n and left_ts[i] <= right_ts[j]) else right_ts[j]
            while i < n and left_ts[i] == now:
                if i + AHEAD < n:
                    prefetch(counts, STRIDE * left_codes[i + AHEAD])
                pending = _touch(mode, counts, STRIDE * left_codes[i], touched, before, pending)
                counts[STRIDE * left_codes[i]] += left_sign[i]
                i += 1
            while j < m and right_ts[j] == now:
                if j + AHEAD < m:
                    prefetch(counts, STRIDE * right_codes[j + AHEAD])
                pending = _touch(mode, counts, STRIDE * right_codes[j], touched, before, pending)
                counts[STRIDE * right_codes[j] + 1] += right_sign[j]
                j += 1
        total = 0
        for index in range(pending):
            position = touched[index]
            total += abs(_copies(mode, counts[position], counts[position + 1]) - before[index])
        if count + total > len(out_ts):
            done[_LEFT], done[_RIGHT], done[_CHANGES], done[_EMPTY] = i, j, count, empties
            done[_PENDING], done[_NOW], done[_WANTED] = pending, now, total
            return
        for sign in (-1, 1):
            for index in range(pending):
                position = touched[index]
                copies = sign * (_copies(mode, counts[position], counts[position + 1]) - before[index])
                for _ in range(copies):
                    out_ts[count], out_sign[count], out_codes[count] = now, sign, position // STRIDE
                    count += 1
        for index in range(pending):
            position = touched[index]
            counts[position + 2] = 0
            if counts[position] == 0 and counts[position + 1] == 0:
                empty[empties] = position
                empties += 1
        pending = 0
    done[_LEFT], done[_RIGHT], done[_CHANGES], done[_EMPTY] = i, j, count, empties
    done[_PENDING], done[_WANTED] = 0, 0


@kernel
def _dead(empty: Ints, counts: Ints) -> Ints:
    """The codes that had no rows at some instant and have none now, each once."""
    dead = np.empty(len(empty), np.int64)
    found = 0
    for position in empty:
        if counts[position] == 0 and counts[position + 1] == 0 and counts[position + 2] == 0:
            counts[position + 2] = 1
            dead[found] = position // STRIDE
            found += 1
    for index in range(found):
        counts[STRIDE * dead[index] + 2] = 0
    return dead[:found].copy()
