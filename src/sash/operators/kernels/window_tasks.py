"""The tasks of window functions as integers, and the entries that they output."""

from __future__ import annotations

from typing import Final

from sash.state.jit import kernel
from sash.state.memory import Ints

KIND, PARAMETER, TREE, START, START_AT, STOP, STOP_AT, TASK = range(8)
"""The numbers of a task: its kind and parameter, the tree that it points into, and its frame."""

WHOLE, ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, SHIFT, PICK, SWEEP, EXTREME = range(11)
"""Kinds of tasks. SHIFT is LAG and LEAD; PICK a row of the frame, by its number or -1 for the last; SWEEP aggregates a frame;
EXTREME finds its smallest value."""

UNBOUNDED, ROW, PEER, VALUE = range(4)
"""Kinds of bounds; START_AT and STOP_AT are an offset in rows, or the number of the word with the bound."""

ENTRY: Final = 5
"""The numbers of an entry: ts, task, slot, value, divisor; and of a step: task, 2 * slot + 1 if it enters, the version that is
complete after it or -1, the rows of the frame, and its group (0 for frames, 1 + the partition for what is kept of that)."""


@kernel
def write_entry(out: Ints, used: int, ts: int, task: int, slot: int, value: int, divisor: int) -> int:
    """Append an entry, for which there is room; returns the number of entries."""
    at = used * ENTRY
    out[at] = ts
    out[at + 1] = task
    out[at + 2] = slot
    out[at + 3] = value
    out[at + 4] = divisor
    return used + 1
