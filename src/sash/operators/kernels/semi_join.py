"""The loop of the semi-join: the left rows of a key start and end with the first and the last row on the right."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.lists import CODE, EXPIRY, LENGTH, NEXT, WORDS, dead_codes, link, look_ahead, unlink
from sash.state.changes import Signs
from sash.state.jit import grown, inlined, kernel, uncounted
from sash.state.memory import Ints

_LEFT, _RIGHT, _CHANGES, _EMPTY, _WANTED, _SILENT, _PREMATURE = range(7)
_RIGHTS, _BEFORE = LENGTH + 1, 1
"""Per code: the head of the left rows, the number of right rows before this instant (+ 1, or 0 if not touched), the
number of left rows, and the number of right rows."""


@inlined
def _inside(anti: bool, lists: Ints, position: int) -> bool:
    """Whether the left rows of a key are in the output; rows with NULL keys have a negative place."""
    return anti if position < 0 else (lists[position + _RIGHTS] > 0) != anti


@kernel
def advance(
    anti: bool, left_ts: Ints, left_sign: Signs, left_slots: Ints, rows: Ints,
    right_ts: Ints, right_sign: Signs, right_codes: Ints, lists: Ints,
) -> tuple[Ints, Signs, Ints, Ints, int, int]:  # fmt: skip
    """Apply the events of both sides; returns the changes (times, signs, left slots), the codes without rows, the number
    of output rows that expired silently, and the number that the right side retracted."""
    n, m = len(left_ts), len(right_ts)
    ts = np.empty(n + m + 16, np.int64)
    sign = np.empty(n + m + 16, np.int8)
    slots = np.empty(n + m + 16, np.int64)
    touched = np.empty(m, np.int64)
    empty = np.empty(n + m, np.int64)
    done = np.zeros(7, np.int64)
    while done[_LEFT] < n or done[_RIGHT] < m:
        # Outputs grow here: arrays replaced inside the loop would be reference-counted at every event.
        size = done[_CHANGES] + done[_WANTED]
        ts, sign, slots = grown(ts, size), grown(sign, size), grown(slots, size)
        _run(
            anti, left_ts, left_sign, left_slots, rows, right_ts, right_sign, right_codes, lists,
            done, ts, sign, slots, touched, empty,
        )  # fmt: skip
    count = done[_CHANGES]
    dead = dead_codes(empty[: done[_EMPTY]], lists)
    return ts[:count], sign[:count], slots[:count], dead, done[_SILENT], done[_PREMATURE]


@uncounted
def _run(
    anti: bool, left_ts: Ints, left_sign: Signs, left_slots: Ints, rows: Ints,
    right_ts: Ints, right_sign: Signs, right_codes: Ints, lists: Ints,
    done: Ints, out_ts: Ints, out_sign: Signs, out_slots: Ints, touched: Ints, empty: Ints,
) -> None:  # fmt: skip
    """Continue from `done`, instant by instant, until the events end or the next changes may not fit in the output."""
    n, m, room = len(left_ts), len(right_ts), len(out_ts)
    i, j, count, empties = done[_LEFT], done[_RIGHT], done[_CHANGES], done[_EMPTY]
    done[_WANTED] = 0
    while i < n or j < m:
        now = left_ts[i] if j >= m or (i < n and left_ts[i] <= right_ts[j]) else right_ts[j]
        last, stop, pending, most = i, j, 0, 0
        while last < n and left_ts[last] == now:
            last += 1
            most += 1
        while stop < m and right_ts[stop] == now:
            position = WORDS * right_codes[stop]
            if lists[position + _BEFORE] == 0:
                lists[position + _BEFORE] = lists[position + _RIGHTS] + 1
                touched[pending] = position
                pending += 1
                most += lists[position + LENGTH]
            stop += 1
        if count + most > room:
            for index in range(pending):
                lists[touched[index] + _BEFORE] = 0
            done[_WANTED] = most
            break
        while i < last and left_sign[i] < 0:
            # A row that ends was in the output if it was before this instant.
            slot = left_slots[i]
            position = WORDS * rows[WORDS * slot + CODE]
            look_ahead(i, left_slots, rows, lists)
            if _inside(anti, lists, position):
                if now < rows[WORDS * slot + EXPIRY]:
                    out_ts[count], out_sign[count], out_slots[count] = now, -1, slot
                    count += 1
                else:
                    done[_SILENT] += 1
            if position >= 0:
                unlink(rows, slot, lists, position)
                if lists[position] == 0 and lists[position + _RIGHTS] == 0:
                    empty[empties] = position // WORDS
                    empties += 1
            i += 1
        for index in range(j, stop):
            lists[WORDS * right_codes[index] + _RIGHTS] += right_sign[index]
        j = stop
        for sign in (-1, 1):
            for index in range(pending):
                position = touched[index]
                matched = lists[position + _RIGHTS] > 0
                if matched == (lists[position + _BEFORE] > 1) or (matched != anti) != (sign > 0):
                    continue
                if sign < 0:
                    done[_PREMATURE] += lists[position + LENGTH]
                following = lists[position]
                while following > 0:
                    out_ts[count], out_sign[count], out_slots[count] = now, sign, following - 1
                    count += 1
                    following = rows[WORDS * (following - 1) + NEXT]
        for index in range(pending):
            position = touched[index]
            lists[position + _BEFORE] = 0
            if lists[position] == 0 and lists[position + _RIGHTS] == 0:
                empty[empties] = position // WORDS
                empties += 1
        while i < last:
            slot = left_slots[i]
            position = WORDS * rows[WORDS * slot + CODE]
            look_ahead(i, left_slots, rows, lists)
            if position >= 0:
                link(rows, slot, lists, position)
            if _inside(anti, lists, position):
                out_ts[count], out_sign[count], out_slots[count] = now, 1, slot
                count += 1
            i += 1
    done[_LEFT], done[_RIGHT], done[_CHANGES], done[_EMPTY] = i, j, count, empties
