"""The loop of EXCEPT ALL whose rows may carry expiration times: the output is corrected after every instant.

Of a value with v1 left and v2 right rows, max(v1 - v2, 0) copies are in the output. Some are *retracted*: they are
interchangeable, each ends by a `-` row, and only their number is kept. The others are *stamped*: left rows with their
expiration times. A value's stamped rows, in order of expiration, form two stacks: those in the output, with the last to
expire on top, and those not in the output, with the first to expire on top. So rows enter and leave the output at a top.
The row that expires is the first of all: the bottom of the rows in the output, where decrementing a count is enough, or,
if there are none, the top of the others.

If rows expire in order, a new row is the last. Otherwise its position is searched from the boundary of the stacks, for at
most `reach` steps, so that no input makes this expensive: a row that would need more is retracted instead.
"""

from __future__ import annotations

import numpy as np

from sash.state.changes import Signs
from sash.state.jit import AHEAD, inlined, kernel, prefetch
from sash.state.memory import Ints
from sash.time import FOREVER

STRIDE = 8
_LEFT, _RIGHT, _RETRACTED, _STAMPED, _IN, _OUT, _LAST, _TOUCHED = range(STRIDE)
"""Per value: its rows on either side; its copies in the output of either kind; the tops of its stacks, and the bottom of
the stack of rows not in the output (slot + 1, or 0); and, during an instant, 1 + its left ends to be retracted."""

WORDS = 2
_BELOW, _EXPIRY = range(WORDS)
"""Per slot of a stamped row: the row below it on its stack (slot + 1), and its expiration time."""

_TIMED, _FRESH, _CODE = 1, 2, 4
"""Per slot, as one number: whether the row is stamped, whether it was inserted at this instant among the rows in the
output but not yet sent, and the code of its value."""


@kernel
def fill(slots: Ints, codes: Ints, exp: Ints, tags: Ints, nodes: Ints) -> None:
    """Store new left rows; those with an expiration time are stamped."""
    for index in range(len(slots)):
        slot = slots[index]
        tags[slot] = _CODE * codes[index]
        if exp[index] < FOREVER:
            tags[slot] += _TIMED
            nodes[WORDS * slot + _EXPIRY] = exp[index]


@inlined
def _touch(values: Ints, position: int, touched: Ints, pending: int) -> int:
    """Mark a value as touched at this instant; returns the number of touched values."""
    if values[position + _TOUCHED] == 0:
        values[position + _TOUCHED] = 1
        touched[pending] = position
        pending += 1
    return pending


@inlined
def _push_out(nodes: Ints, slot: int, values: Ints, position: int) -> None:
    """Push a row on the stack of rows not in the output."""
    nodes[WORDS * slot + _BELOW] = values[position + _OUT]
    if values[position + _OUT] == 0:
        values[position + _LAST] = slot + 1
    values[position + _OUT] = slot + 1


@inlined
def _append_out(nodes: Ints, slot: int, values: Ints, position: int) -> None:
    """Append a row at the bottom of the stack of rows not in the output."""
    nodes[WORDS * slot + _BELOW] = 0
    if values[position + _OUT] == 0:
        values[position + _OUT] = slot + 1
    else:
        nodes[WORDS * (values[position + _LAST] - 1) + _BELOW] = slot + 1
    values[position + _LAST] = slot + 1


@kernel
def _insert(reach: int, nodes: Ints, slot: int, tags: Ints, values: Ints, position: int) -> int:
    """Insert a new row in order of expiration; returns the number of comparisons."""
    expiry, last = nodes[WORDS * slot + _EXPIRY], values[position + _LAST] - 1
    first, top, inside = values[position + _OUT], values[position + _IN], values[position + _STAMPED]
    if first > 0 and nodes[WORDS * last + _EXPIRY] <= expiry:
        _append_out(nodes, slot, values, position)
        return 1
    above, steps = 0, 0
    if inside > 0 and nodes[WORDS * (top - 1) + _EXPIRY] > expiry:
        while steps < min(inside, reach) and nodes[WORDS * (top - 1) + _EXPIRY] > expiry:
            above, top = top, nodes[WORDS * (top - 1) + _BELOW]
            steps += 1
        if steps < inside and nodes[WORDS * (top - 1) + _EXPIRY] > expiry:
            tags[slot] -= _TIMED
            return steps
        nodes[WORDS * slot + _BELOW] = top
        nodes[WORDS * (above - 1) + _BELOW] = slot + 1
        values[position + _STAMPED] += 1
        tags[slot] += _FRESH
        return steps
    while first > 0 and steps < reach and nodes[WORDS * (first - 1) + _EXPIRY] <= expiry:
        above, first = first, nodes[WORDS * (first - 1) + _BELOW]
        steps += 1
    if first > 0 and nodes[WORDS * (first - 1) + _EXPIRY] <= expiry:
        tags[slot] -= _TIMED
    elif above == 0:
        _push_out(nodes, slot, values, position)
    else:
        nodes[WORDS * slot + _BELOW] = first
        nodes[WORDS * (above - 1) + _BELOW] = slot + 1
    return steps


@inlined
def _end(nodes: Ints, values: Ints, position: int) -> bool:
    """Remove the stamped row that expires first; returns whether it was in the output."""
    inside: bool = values[position + _STAMPED] > 0
    if inside:
        values[position + _STAMPED] -= 1
    else:
        values[position + _OUT] = nodes[WORDS * (values[position + _OUT] - 1) + _BELOW]
    return inside


@inlined
def _missing(values: Ints, position: int) -> int:
    """The number of copies of a value that are missing in the output; negative if it has too many."""
    there: int = values[position + _RETRACTED] + values[position + _STAMPED]
    copies: int = max(values[position + _LEFT] - values[position + _RIGHT], 0)
    return copies - there


@kernel
def advance(
    ordered: bool, reach: int, left_ts: Ints, left_sign: Signs, left_slots: Ints, tags: Ints, nodes: Ints,
    right_ts: Ints, right_sign: Signs, right_codes: Ints, values: Ints,
) -> tuple[Ints, Ints, Signs, Ints, Ints, int, int, int]:  # fmt: skip
    """Apply the events of both sides; with `ordered`, left rows expire in order of arrival.

    Returns the changes (times, expiration times, signs, codes), the codes without rows, the number of output rows that
    expired silently, the number retracted prematurely, and the number of comparisons of new rows.
    """
    n, m = len(left_ts), len(right_ts)
    # An event changes one copy; the arrival of a stamped row may displace another.
    ts = np.empty(2 * n + m, np.int64)
    exp = np.empty(2 * n + m, np.int64)
    sign = np.empty(2 * n + m, np.int8)
    codes = np.empty(2 * n + m, np.int64)
    touched = np.empty(n + m, np.int64)
    empty = np.empty(n + m, np.int64)
    i = j = count = empties = silent = premature = steps = 0
    while i < n or j < m:
        now = left_ts[i] if j >= m or (i < n and left_ts[i] <= right_ts[j]) else right_ts[j]
        first, pending, compared = i, 0, steps
        while i < n and left_ts[i] == now:
            if i + 2 * AHEAD < n:
                prefetch(tags, left_slots[i + 2 * AHEAD])
            if i + AHEAD < n:
                prefetch(values, STRIDE * (tags[left_slots[i + AHEAD]] // _CODE))
            slot = left_slots[i]
            position, timed = STRIDE * (tags[slot] // _CODE), tags[slot] & _TIMED > 0
            pending = _touch(values, position, touched, pending)
            values[position + _LEFT] += left_sign[i]
            if left_sign[i] > 0:
                if timed and ordered:
                    _append_out(nodes, slot, values, position)
                elif timed:
                    steps += _insert(reach, nodes, slot, tags, values, position)
            elif timed and _end(nodes, values, position):
                silent += 1
            else:
                values[position + _TOUCHED] += 1
            i += 1
        while j < m and right_ts[j] == now:
            if j + AHEAD < m:
                prefetch(values, STRIDE * right_codes[j + AHEAD])
            position = STRIDE * right_codes[j]
            pending = _touch(values, position, touched, pending)
            values[position + _RIGHT] += right_sign[j]
            j += 1
        for index in range(pending):
            position, taken = touched[index], 0
            for _ in range(-_missing(values, position)):
                until = FOREVER
                if values[position + _RETRACTED] > 0:
                    values[position + _RETRACTED] -= 1
                else:
                    slot = values[position + _IN] - 1
                    values[position + _IN] = nodes[WORDS * slot + _BELOW]
                    values[position + _STAMPED] -= 1
                    _push_out(nodes, slot, values, position)
                    if tags[slot] & _FRESH > 0:
                        tags[slot] -= _FRESH
                        continue
                    until = nodes[WORDS * slot + _EXPIRY]
                ts[count], exp[count], sign[count], codes[count] = now, until, -1, position // STRIDE
                count += 1
                taken += 1
            premature += max(0, taken - values[position + _TOUCHED] + 1)
        for index in range(pending):
            position = touched[index]
            for _ in range(_missing(values, position)):
                until = FOREVER
                if values[position + _OUT] > 0:
                    slot = values[position + _OUT] - 1
                    until = nodes[WORDS * slot + _EXPIRY]
                    values[position + _OUT] = nodes[WORDS * slot + _BELOW]
                    nodes[WORDS * slot + _BELOW] = values[position + _IN]
                    values[position + _IN] = slot + 1
                    values[position + _STAMPED] += 1
                else:
                    values[position + _RETRACTED] += 1
                ts[count], exp[count], sign[count], codes[count] = now, until, 1, position // STRIDE
                count += 1
            values[position + _TOUCHED] = 0
            if values[position + _LEFT] == 0 and values[position + _RIGHT] == 0:
                empty[empties] = position
                empties += 1
        if steps > compared:
            for index in range(first, i):
                slot = left_slots[index]
                if left_sign[index] > 0 and tags[slot] & _FRESH > 0:
                    tags[slot] -= _FRESH
                    ts[count], exp[count], sign[count] = now, nodes[WORDS * slot + _EXPIRY], 1
                    codes[count] = tags[slot] // _CODE
                    count += 1
    dead = _dead(empty[:empties], values)
    return ts[:count], exp[:count], sign[:count], codes[:count], dead, silent, premature, steps


@kernel
def _dead(empty: Ints, values: Ints) -> Ints:
    """The codes that had no rows at some instant and have none now, each once."""
    dead = np.empty(len(empty), np.int64)
    found = 0
    for position in empty:
        if values[position + _LEFT] == 0 and values[position + _RIGHT] == 0 and values[position + _TOUCHED] == 0:
            values[position + _TOUCHED] = 1
            dead[found] = position // STRIDE
            found += 1
    for index in range(found):
        values[STRIDE * dead[index] + _TOUCHED] = 0
    return dead[:found].copy()
