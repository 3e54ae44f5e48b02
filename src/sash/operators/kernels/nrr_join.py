"""The loops of the join with a non-retroactive relation: rows are joined with its current version."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.lists import CODE, LENGTH, NEXT, WORDS, dead_codes, link, unlink
from sash.state.changes import Signs
from sash.state.jit import grown, kernel
from sash.state.memory import Ints

_ROW, _UPDATE, _PAIRS, _EMPTY, _WANTED = range(5)


@kernel
def join_rows(
    row_ts: Ints, row_codes: Ints, ts: Ints, sign: Signs, slots: Ints, links: Ints, lists: Ints
) -> tuple[Ints, Ints, Ints]:
    """Join the rows with the relation while applying its updates: a row sees only the updates before its own instant.

    Returns the pairs as (position of the row, slot of the relation's row), and the codes that have no rows left. A row
    of code -1 has no match.
    """
    owners = np.empty(len(row_ts) + 16, np.int64)
    partners = np.empty(len(row_ts) + 16, np.int64)
    empty = np.empty(len(ts), np.int64)
    done = np.zeros(5, np.int64)
    while done[_ROW] < len(row_ts) or done[_UPDATE] < len(ts):
        size = done[_PAIRS] + done[_WANTED]
        owners, partners = grown(owners, size), grown(partners, size)
        _run(row_ts, row_codes, ts, sign, slots, links, lists, done, owners, partners, empty)
    count = done[_PAIRS]
    return owners[:count], partners[:count], dead_codes(empty[: done[_EMPTY]], lists)


@kernel
def _run(
    row_ts: Ints, row_codes: Ints, ts: Ints, sign: Signs, slots: Ints, links: Ints, lists: Ints,
    done: Ints, owners: Ints, partners: Ints, empty: Ints,
) -> None:  # fmt: skip
    """Continue from `done` until all events are applied or the output is full."""
    n, m, room = len(row_ts), len(ts), len(owners)
    i, j, count, empties = done[_ROW], done[_UPDATE], done[_PAIRS], done[_EMPTY]
    done[_WANTED] = 0
    while i < n or j < m:
        if i < n and (j >= m or row_ts[i] <= ts[j]):
            code = row_codes[i]
            if code >= 0:
                matches = lists[WORDS * code + LENGTH]
                if count + matches > room:
                    done[_WANTED] = matches
                    break
                match = lists[WORDS * code]
                while match > 0:
                    owners[count] = i
                    partners[count] = match - 1
                    count += 1
                    match = links[WORDS * (match - 1) + NEXT]
            i += 1
            continue
        slot = slots[j]
        place = WORDS * links[WORDS * slot + CODE]
        if sign[j] > 0:
            link(links, slot, lists, place)
        else:
            unlink(links, slot, lists, place)
            if lists[place] == 0:
                empty[empties] = place // WORDS
                empties += 1
        j += 1
    done[_ROW], done[_UPDATE], done[_PAIRS], done[_EMPTY] = i, j, count, empties


@kernel
def chain(owners: Ints, given: Ints, heads: Ints, following: Ints) -> None:
    """Record that the row at slot `owners[n]` produced the result at slot `given[n]`."""
    for index in range(len(owners)):
        following[given[index]] = heads[owners[index]]
        heads[owners[index]] = given[index] + 1


@kernel
def unchain(slots: Ints, heads: Ints, following: Ints) -> tuple[Ints, Ints]:
    """Remove and return the results of the rows at these slots: (position in `slots`, slot of the result)."""
    size = 0
    for slot in slots:
        place = heads[slot]
        while place > 0:
            size += 1
            place = following[place - 1]
    positions, given = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for index in range(len(slots)):
        place = heads[slots[index]]
        heads[slots[index]] = 0
        while place > 0:
            positions[count], given[count] = index, place - 1
            count += 1
            place = following[place - 1]
    return positions, given
