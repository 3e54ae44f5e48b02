"""The loop of sessions: rows of a key whose times are at most a gap apart are linked, the latest first.

A row may have a gap of its own beside that of all: the last time of a session is the latest of the times plus these.

Sessions are records of four words by key code: the times of the first and of the last row, the slot of the latest row plus
one (0: no session), and the slot in the calendar of ends plus one. Rows are records of two words by slot: the slot of the
row before, plus one, and the session's first time.
"""

from __future__ import annotations

import numpy as np

from sash.state.jit import kernel
from sash.state.memory import Ints

SESSION, ROW = 4, 2
FIRST, LAST, _LATEST, TIMER = 0, 1, 2, 3
_BEFORE, LABEL = 0, 1


@kernel
def extend(
    ts: Ints, gaps: Ints, codes: Ints, slots: Ints, gap: int, sessions: Ints, rows: Ints, kept: int, linked: bool
) -> tuple[Ints, Ints, Ints, int]:
    """Add rows, in order of time, to the sessions of their keys; a row more than `gap` later begins a new one.

    Returns the label of every row, the first time of its session; and the slots of the rows of sessions that have ended
    before, with the times of their ends. `kept` is the largest number of these. If rows are not `linked`, only the latest is returned.
    """
    labels = np.empty(len(ts), np.int64)
    gone, ends = np.empty(kept, np.int64), np.empty(kept, np.int64)
    count = 0
    for index in range(len(ts)):
        session, row = SESSION * codes[index], ROW * slots[index]
        if sessions[session + _LATEST] and ts[index] > sessions[session + LAST] + gap:
            count = _close(session, gap, sessions, rows, gone, ends, count)
        if not sessions[session + _LATEST]:
            sessions[session + FIRST] = ts[index]
            sessions[session + LAST] = ts[index]
        rows[row + _BEFORE] = sessions[session + _LATEST] if linked else 0
        rows[row + LABEL] = sessions[session + FIRST]
        sessions[session + LAST] = max(sessions[session + LAST], ts[index] + gaps[index])
        sessions[session + _LATEST] = slots[index] + 1
        labels[index] = sessions[session + FIRST]
    return labels, gone, ends, count


@kernel
def close(codes: Ints, gap: int, clock: int, sessions: Ints, rows: Ints, gone: Ints, ends: Ints, count: int) -> int:
    """End the sessions of these keys that end before the clock; the slots of their rows and their ends are added."""
    for code in codes:
        session = SESSION * code
        if sessions[session + _LATEST] and sessions[session + LAST] + gap < clock:
            count = _close(session, gap, sessions, rows, gone, ends, count)
    return count


@kernel
def _close(session: int, gap: int, sessions: Ints, rows: Ints, gone: Ints, ends: Ints, count: int) -> int:
    row = sessions[session + _LATEST]
    while row:
        gone[count], ends[count] = row - 1, sessions[session + LAST] + gap
        count += 1
        row = rows[ROW * (row - 1) + _BEFORE]
    sessions[session + _LATEST] = 0
    return count
