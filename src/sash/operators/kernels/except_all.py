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
def _touch(values: Ints, place: int, touched: Ints, pending: int) -> int:
    """Mark a value as touched at this instant; returns the number of touched values."""
    if values[place + _TOUCHED] == 0:
        values[place + _TOUCHED] = 1
        touched[pending] = place
        pending += 1
    return pending


@inlined
def _push_out(nodes: Ints, slot: int, values: Ints, place: int) -> None:
    """Push a row on the stack of rows not in the output."""
    nodes[WORDS * slot + _BELOW] = values[place + _OUT]
    if values[place + _OUT] == 0:
        values[place + _LAST] = slot + 1
    values[place + _OUT] = slot + 1


@inlined
def _append_out(nodes: Ints, slot: int, values: Ints, place: int) -> None:
    """Append a row at the bottom of the stack of rows not in the output."""
    nodes[WORDS * slot + _BELOW] = 0
    if values[place + _OUT] == 0:
        values[place + _OUT] = slot + 1
    else:
        nodes[WORDS * (values[place + _LAST] - 1) + _BELOW] = slot + 1
    values[place + _LAST] = slot + 1


@kernel
def _insert(reach: int, nodes: Ints, slot: int, tags: Ints, values: Ints, place: int) -> int:
    """Insert a new row in order of expiration; returns the number of comparisons."""
    expiry, last = nodes[WORDS * slot + _EXPIRY], values[place + _LAST] - 1
    first, top, inside = values[place + _OUT], values[place + _IN], values[place + _STAMPED]
    if first > 0 and nodes[WORDS * last + _EXPIRY] <= expiry:
        _append_out(nodes, slot, values, place)
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
        values[place + _STAMPED] += 1
        tags[slot] += _FRESH
        return steps
    while first > 0 and steps < reach and nodes[WORDS * (first - 1) + _EXPIRY] <= expiry:
        above, first = first, nodes[WORDS * (first - 1) + _BELOW]
        steps += 1
    if first > 0 and nodes[WORDS * (first - 1) + _EXPIRY] <= expiry:
        tags[slot] -= _TIMED
    elif above == 0:
        _push_out(nodes, slot, values, place)
    else:
        nodes[WORDS * slot + _BELOW] = first
        nodes[WORDS * (above - 1) + _BELOW] = slot + 1
    return steps


@inlined
def _end(nodes: Ints, values: Ints, place: int) -> bool:
    """Remove the stamped row that expires first; returns whether it was in the output."""
    inside: bool = values[place + _STAMPED] > 0
    if inside:
        values[place + _STAMPED] -= 1
    else:
        values[place + _OUT] = nodes[WORDS * (values[place + _OUT] - 1) + _BELOW]
    return inside


@inlined
def _missing(values: Ints, place: int) -> int:
    """The number of copies of a value that are missing in the output; negative if it has too many."""
    there: int = values[place + _RETRACTED] + values[place + _STAMPED]
    copies: int = max(values[place + _LEFT] - values[place + _RIGHT], 0)
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
            place, timed = STRIDE * (tags[slot] // _CODE), tags[slot] & _TIMED > 0
            pending = _touch(values, place, touched, pending)
            values[place + _LEFT] += left_sign[i]
            if left_sign[i] > 0:
                if timed and ordered:
                    _append_out(nodes, slot, values, place)
                elif timed:
                    steps += _insert(reach, nodes, slot, tags, values, place)
            elif timed and _end(nodes, values, place):
                silent += 1
            else:
                values[place + _TOUCHED] += 1
            i += 1
        while j < m and right_ts[j] == now:
            if j + AHEAD < m:
                prefetch(values, STRIDE * right_codes[j + AHEAD])
            place = STRIDE * right_codes[j]
            pending = _touch(values, place, touched, pending)
            values[place + _RIGHT] += right_sign[j]
            j += 1
        for index in range(pending):
            place, taken = touched[index], 0
            for _ in range(-_missing(values, place)):
                until = FOREVER
                if values[place + _RETRACTED] > 0:
                    values[place + _RETRACTED] -= 1
                else:
                    slot = values[place + _IN] - 1
                    values[place + _IN] = nodes[WORDS * slot + _BELOW]
                    values[place + _STAMPED] -= 1
                    _push_out(nodes, slot, values, place)
                    if tags[slot] & _FRESH > 0:
                        tags[slot] -= _FRESH
                        continue
                    until = nodes[WORDS * slot + _EXPIRY]
                ts[count], exp[count], sign[count], codes[count] = now, until, -1, place // STRIDE
                count += 1
                taken += 1
            premature += max(0, taken - values[place + _TOUCHED] + 1)
        for index in range(pending):
            place = touched[index]
            for _ in range(_missing(values, place)):
                until = FOREVER
                if values[place + _OUT] > 0:
                    slot = values[place + _OUT] - 1
                    until = nodes[WORDS * slot + _EXPIRY]
                    values[place + _OUT] = nodes[WORDS * slot + _BELOW]
                    nodes[WORDS * slot + _BELOW] = values[place + _IN]
                    values[place + _IN] = slot + 1
                    values[place + _STAMPED] += 1
                else:
                    values[place + _RETRACTED] += 1
                ts[count], exp[count], sign[count], codes[count] = now, until, 1, place // STRIDE
                count += 1
            values[place + _TOUCHED] = 0
            if values[place + _LEFT] == 0 and values[place + _RIGHT] == 0:
                empty[empties] = place
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
    for place in empty:
        if values[place + _LEFT] == 0 and values[place + _RIGHT] == 0 and values[place + _TOUCHED] == 0:
            values[place + _TOUCHED] = 1
            dead[found] = place // STRIDE
            found += 1
    for index in range(found):
        values[STRIDE * dead[index] + _TOUCHED] = 0
    return dead[:found].copy()
