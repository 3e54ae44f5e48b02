"""The output of window functions: entries of all tasks become touches of rows, and touches become changes.

A *touch* is one instant at which the values of one row may change. For every task it has the value before and after, as the
number of an entry of that task, or -1 - n for the stored values of the n-th row in `firsts`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.changes import Signs
from sash.state.jit import kernel
from sash.state.memory import Ints

Mask = npt.NDArray[np.bool_]
Table = npt.NDArray[np.int64]


@kernel
def assemble(
    ts: Ints, sign: Signs, slots: Ints, entry_ts: Ints, entry_task: Ints, entry_slot: Ints, entry_number: Ints,
    tasks: int, marks: Ints,
) -> tuple[Ints, Ints, Mask, Mask, Table, Table, Mask, Ints]:  # fmt: skip
    """Touches of rows by the events and entries of some instants: their times, rows, whether the row arrives or ends, values
    before and after, whether it is the row's last touch and stays, and the rows whose stored values are needed.

    `marks` is zero for every slot before and after the call.
    """
    most = len(ts) + len(entry_ts)
    touch_ts = np.empty(most, np.int64)
    touch_slot = np.empty(most, np.int64)
    born = np.zeros(most, np.bool_)
    dead = np.zeros(most, np.bool_)
    before = np.zeros((most, tasks), np.int64)
    after = np.zeros((most, tasks), np.int64)
    firsts = np.empty(most, np.int64)
    touches = needed = entry = 0
    event = 0
    while event < len(ts):
        now = ts[event]
        while event < len(ts) and ts[event] == now:
            touches, needed, at = _touch(
                slots[event], now, sign[event] > 0, touch_ts, touch_slot, before, after, firsts, marks, touches, needed
            )
            if sign[event] > 0:
                born[at] = True
            else:
                dead[at] = True
            event += 1
        while entry < len(entry_ts) and entry_ts[entry] == now:
            touches, needed, at = _touch(
                entry_slot[entry], now, False, touch_ts, touch_slot, before, after, firsts, marks, touches, needed
            )
            after[at, entry_task[entry]] = entry_number[entry]
            entry += 1
    last = np.zeros(touches, np.bool_)
    for touch in range(touches):
        last[touch] = marks[touch_slot[touch]] == touch + 1 and not dead[touch]
    for touch in range(touches):
        marks[touch_slot[touch]] = 0
    return (
        touch_ts[:touches].copy(), touch_slot[:touches].copy(), born[:touches].copy(), dead[:touches].copy(),
        before[:touches].copy(), after[:touches].copy(), last, firsts[:needed].copy(),
    )  # fmt: skip


@kernel
def _touch(
    slot: int, now: int, born: bool, touch_ts: Ints, touch_slot: Ints, before: Table, after: Table, firsts: Ints,
    marks: Ints, touches: int, needed: int,
) -> tuple[int, int, int]:  # fmt: skip
    """The number of touches, of rows whose stored values are needed, and of the touch of this slot at this instant."""
    last = marks[slot] - 1
    if last >= 0 and touch_ts[last] == now:
        return touches, needed, last
    touch_ts[touches] = now
    touch_slot[touches] = slot
    if last >= 0:
        before[touches, :] = after[last, :]
    elif not born:
        before[touches, :] = -1 - needed
        firsts[needed] = slot
        needed += 1
    after[touches, :] = before[touches, :]
    marks[slot] = touches + 1
    return touches + 1, needed, touches


@kernel
def emit(ts: Ints, born: Mask, dead: Mask, changed: Mask) -> tuple[Ints, Signs, Ints]:
    """The changes of the touches (ts, sign, touch), with every `-` before any `+` at each instant."""
    size = len(ts)
    out_ts = np.empty(2 * size, np.int64)
    out_sign = np.empty(2 * size, np.int8)
    out_touch = np.empty(2 * size, np.int64)
    made = begin = 0
    while begin < size:
        end = begin
        while end < size and ts[end] == ts[begin]:
            end += 1
        for sign in (-1, 1):
            for touch in range(begin, end):
                if not (born[touch] or dead[touch] or changed[touch]):
                    continue
                if (sign < 0 and born[touch]) or (sign > 0 and dead[touch]):
                    continue
                out_ts[made], out_sign[made], out_touch[made] = ts[begin], sign, touch
                made += 1
        begin = end
    return out_ts[:made].copy(), out_sign[:made].copy(), out_touch[:made].copy()
