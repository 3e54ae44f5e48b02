"""Rows in doubly linked lists per key code: rows are found, added and removed in constant time.

A side's rows are an array of records of four words by slot: next slot + 1, previous slot + 1, code, expiry. The lists
are an array of records of four words by code: the heads (slot + 1, or 0) of the two sides, then their lengths. A side
of which only the length is needed has no head.
"""

from __future__ import annotations

import numpy as np

from sash.state.jit import AHEAD, inlined, kernel, prefetch
from sash.state.memory import Ints

WORDS = 4
NEXT, PREVIOUS, CODE, EXPIRY = range(WORDS)
LENGTH = 2
"""The offset from a list's head to its length."""


@kernel
def fill(rows: Ints, slots: Ints, codes: Ints, exp: Ints) -> None:
    """Write the code and the expiry of new rows."""
    for index in range(len(slots)):
        row = WORDS * slots[index]
        rows[row + CODE] = codes[index]
        rows[row + EXPIRY] = exp[index]


@inlined
def link(rows: Ints, slot: int, lists: Ints, head: int) -> None:
    """Insert a row at the front of the list whose head is lists[head]."""
    first = lists[head]
    rows[WORDS * slot + NEXT] = first
    rows[WORDS * slot + PREVIOUS] = 0
    if first > 0:
        rows[WORDS * (first - 1) + PREVIOUS] = slot + 1
    lists[head] = slot + 1
    lists[head + LENGTH] += 1


@inlined
def unlink(rows: Ints, slot: int, lists: Ints, head: int) -> None:
    """Remove a row from the list whose head is lists[head]."""
    following, previous = rows[WORDS * slot + NEXT], rows[WORDS * slot + PREVIOUS]
    if previous > 0:
        rows[WORDS * (previous - 1) + NEXT] = following
    else:
        lists[head] = following
    if following > 0:
        rows[WORDS * (following - 1) + PREVIOUS] = previous
    lists[head + LENGTH] -= 1


@inlined
def look_ahead(event: int, slots: Ints, rows: Ints, lists: Ints) -> None:
    """Prefetch the data of later events: first the row, then the lists of its key."""
    if event + 2 * AHEAD < len(slots):
        prefetch(rows, WORDS * slots[event + 2 * AHEAD])
    if event + AHEAD < len(slots):
        prefetch(lists, WORDS * max(rows[WORDS * slots[event + AHEAD] + CODE], 0))


@kernel
def dead_codes(empty: Ints, lists: Ints) -> Ints:
    """The codes that had no rows on either side at some instant and have none now, each once."""
    dead = np.empty(len(empty), np.int64)
    found = 0
    for code in empty:
        position = WORDS * code
        if lists[position] == 0 and lists[position + LENGTH] == 0 and lists[position + LENGTH + 1] == 0:
            lists[position] = -1
            dead[found] = code
            found += 1
    for index in range(found):
        lists[WORDS * dead[index]] = 0
    return dead[:found].copy()
