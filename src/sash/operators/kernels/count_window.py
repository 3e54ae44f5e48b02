"""The loops of the count window: one queue of rows per partition, with the oldest row first.

Queues are records of four words by partition: the first and the last slot, and how many rows there are. Rows are
records of four words by slot: the next slot, the row's ts, and its position in the batch it came with.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.jit import kernel
from sash.state.memory import Ints

WORDS = 4
_FIRST, _LAST, _LENGTH = 0, 1, 2
_NEXT, _TS, _POSITION = 0, 1, 2


@kernel
def advance(
    order: Ints, ts: Ints, codes: Ints, slots: Ints, count: int, queues: Ints, rows: Ints
) -> tuple[npt.NDArray[np.bool_], Ints, Ints, Ints]:
    """Append a batch's rows to their queues, in order; each removes the oldest row of a full queue.

    Returns the mask of rows that enter the window, the slots of the rows that leave it with their times, and the slots of
    rows that are removed at the instant of their arrival and so never enter it.
    """
    n = len(order)
    valid = np.ones(n, np.bool_)
    gone, times, unseen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    leaving = hidden = 0
    for index in range(n):
        position = order[index]
        queue, row = WORDS * codes[position], WORDS * slots[position]
        if queues[queue + _LENGTH] == count:
            oldest = queues[queue + _FIRST]
            queues[queue + _FIRST] = rows[WORDS * oldest + _NEXT]
            queues[queue + _LENGTH] -= 1
            if rows[WORDS * oldest + _TS] == ts[position]:
                valid[rows[WORDS * oldest + _POSITION]] = False
                unseen[hidden] = oldest
                hidden += 1
            else:
                gone[leaving], times[leaving] = oldest, ts[position]
                leaving += 1
        if queues[queue + _LENGTH] == 0:
            queues[queue + _FIRST] = slots[position]
        else:
            rows[WORDS * queues[queue + _LAST] + _NEXT] = slots[position]
        queues[queue + _LAST] = slots[position]
        queues[queue + _LENGTH] += 1
        rows[row + _TS], rows[row + _POSITION] = ts[position], position
    return valid, gone[:leaving].copy(), times[:leaving].copy(), unseen[:hidden].copy()


@kernel
def keep_last(order: Ints, codes: Ints, count: int, partitions: int) -> npt.NDArray[np.bool_]:
    """The positions of the last `count` rows of every partition, in order."""
    kept = np.zeros(len(order), np.bool_)
    found = np.zeros(partitions, np.int64)
    for index in range(len(order) - 1, -1, -1):
        position = order[index]
        if found[codes[position]] < count:
            found[codes[position]] += 1
            kept[position] = True
    return kept
