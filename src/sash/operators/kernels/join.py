"""The loop of the symmetric window hash join: every event of either side meets the list of the other."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.growth import grown
from sash.operators.kernels.lists import CODE, EXPIRY, LENGTH, NEXT, WORDS, dead_codes, link, look_ahead, unlink
from sash.state.changes import Signs
from sash.state.jit import inlined, kernel
from sash.state.memory import Ints

_LEFT, _RIGHT, _PAIRS, _EMPTY, _WANTED = range(5)


@inlined
def _move(rows: Ints, slot: int, sign: int, lists: Ints, head: int) -> None:
    """Put a row into its list or take it out."""
    if sign > 0:
        link(rows, slot, lists, head)
    else:
        unlink(rows, slot, lists, head)


@inlined
def _pair(slot: int, own: Ints, match: int, other: Ints, count: int, out_own: Ints, out_other: Ints, exp: Ints) -> None:
    """Write one pair for each row of a list."""
    expiry = own[WORDS * slot + EXPIRY]
    while match > 0:
        partner = match - 1
        out_own[count] = slot
        out_other[count] = partner
        exp[count] = min(expiry, other[WORDS * partner + EXPIRY])
        count += 1
        match = other[WORDS * partner + NEXT]


@kernel
def advance(
    explicit: bool, left_ts: Ints, left_sign: Signs, left_slots: Ints, left_rows: Ints,
    right_ts: Ints, right_sign: Signs, right_slots: Ints, right_rows: Ints, lists: Ints,
) -> tuple[Ints, Ints, Signs, Ints, Ints, Ints]:  # fmt: skip
    """Apply the events of both sides in order of (time, ends first).

    Returns the pairs as (times, expiries, signs, left slots, right slots), and the codes that have no rows left. If the
    output is not explicit, ends give no pairs.
    """
    n, m = len(left_ts), len(right_ts)
    size = n + m + 16
    ts = np.empty(size, np.int64)
    exp = np.empty(size, np.int64)
    sign = np.empty(size, np.int8)
    left = np.empty(size, np.int64)
    right = np.empty(size, np.int64)
    empty = np.empty(n + m, np.int64)
    done = np.zeros(5, np.int64)
    while done[_LEFT] < n or done[_RIGHT] < m:
        # Outputs grow out here: arrays that are replaced inside of the loop would be counted at every event.
        size = done[_PAIRS] + done[_WANTED]
        ts, exp, sign, left, right = (
            grown(ts, size), grown(exp, size), grown(sign, size), grown(left, size), grown(right, size)
        )  # fmt: skip
        _run(
            explicit, left_ts, left_sign, left_slots, left_rows, right_ts, right_sign, right_slots, right_rows, lists,
            done, ts, exp, sign, left, right, empty,
        )  # fmt: skip
    count = done[_PAIRS]
    dead = dead_codes(empty[: done[_EMPTY]], lists)
    return ts[:count], exp[:count], sign[:count], left[:count], right[:count], dead


@kernel
def _run(
    explicit: bool, left_ts: Ints, left_sign: Signs, left_slots: Ints, left_rows: Ints,
    right_ts: Ints, right_sign: Signs, right_slots: Ints, right_rows: Ints, lists: Ints,
    done: Ints, out_ts: Ints, out_exp: Ints, out_sign: Signs, out_left: Ints, out_right: Ints, empty: Ints,
) -> None:  # fmt: skip
    """Go on from `done` until the events end or the output is full."""
    n, m, room = len(left_ts), len(right_ts), len(out_ts)
    i, j, count, empties = done[_LEFT], done[_RIGHT], done[_PAIRS], done[_EMPTY]
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
            place = WORDS * left_rows[WORDS * slot + CODE]
        else:
            now, sign, slot = right_ts[j], right_sign[j], right_slots[j]
            place = WORDS * right_rows[WORDS * slot + CODE]
        matches = lists[place + LENGTH + 1 - side] if explicit or sign > 0 else 0
        if count + matches > room:
            done[_WANTED] = matches
            break
        for index in range(count, count + matches):
            out_ts[index] = now
            out_sign[index] = sign
        if side == 0:
            look_ahead(i, left_slots, left_rows, lists)
            _move(left_rows, slot, sign, lists, place)
            if matches > 0:
                _pair(slot, left_rows, lists[place + 1], right_rows, count, out_left, out_right, out_exp)
            i += 1
        else:
            look_ahead(j, right_slots, right_rows, lists)
            _move(right_rows, slot, sign, lists, place + 1)
            if matches > 0:
                _pair(slot, right_rows, lists[place], left_rows, count, out_right, out_left, out_exp)
            j += 1
        count += matches
        if sign < 0 and lists[place] == 0 and lists[place + 1] == 0:
            empty[empties] = place // WORDS
            empties += 1
    done[_LEFT], done[_RIGHT], done[_PAIRS], done[_EMPTY] = i, j, count, empties
