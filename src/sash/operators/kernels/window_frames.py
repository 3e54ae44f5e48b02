"""Frames of window functions: their positions, the rows that a change affects, and the steps from one frame to the next."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.wide_tree import WideNodes, collect, kth
from sash.operators.kernels.window_search import Keys, count_below, peers_start, peers_stop
from sash.operators.kernels.window_tasks import (
    ENTRY,
    PARAMETER,
    PEER,
    ROW,
    START,
    START_AT,
    STOP,
    STOP_AT,
    UNBOUNDED,
    write_entry,
)
from sash.state.jit import grown, kernel
from sash.state.memory import Ints


@kernel
def frame_of(
    tree: WideNodes, keys: Keys, task: Ints, root: int, size: int, slot: int, position: int
) -> tuple[int, int]:
    """The positions [start, stop) of the frame of a row; an empty one has start = stop."""
    kind = task[START]
    if kind == UNBOUNDED:
        start = 0
    elif kind == ROW:
        start = position + task[START_AT]
    elif kind == PEER:
        start = peers_start(tree, keys, root, slot)
    else:
        start = count_below(tree, keys, root, 0, slot, task[START_AT], False)
    kind = task[STOP]
    if kind == UNBOUNDED:
        stop = size
    elif kind == ROW:
        stop = position + task[STOP_AT] + 1
    elif kind == PEER:
        stop = peers_stop(tree, keys, root, slot)
    else:
        stop = count_below(tree, keys, root, 0, slot, task[STOP_AT], True)
    start = min(max(start, 0), size)
    return start, max(min(stop, size), start)


@kernel
def affected_by_frame(
    tree: WideNodes, keys: Keys, task: Ints, root: int, size: int, slot: int, position: int
) -> tuple[int, int]:
    """The positions of the rows whose frames may contain, or be moved by, a change of the slot at this position.

    Bounds by value are in the order of the rows, so the rows whose frames have reached a value, or left it, are found as
    values are.
    """
    kind = task[STOP]
    if kind == UNBOUNDED:
        low = 0
    elif kind == ROW:
        low = position - max(task[STOP_AT], 0)
    elif kind == PEER:
        low = peers_start(tree, keys, root, slot)
    else:
        low = count_below(tree, keys, root, task[STOP_AT], slot, 0, False)
    kind = task[START]
    if kind == UNBOUNDED:
        high = size - 1
    elif kind == ROW:
        high = position - min(task[START_AT], 0)
    elif kind == PEER:
        high = peers_stop(tree, keys, root, slot) - 1
    else:
        high = count_below(tree, keys, root, task[START_AT], slot, 0, True) - 1
    return low, high


@kernel
def affected_by_pick(
    tree: WideNodes, keys: Keys, task: Ints, root: int, size: int, slot: int, inserted: bool, position: int
) -> tuple[int, int]:
    """The positions of other rows whose n-th or last row of the frame may change with a row that entered or left here.

    A frame that has the n-th row before it, or the next one if the last is wanted, does not change. A bound that counts rows
    moves with them, so that if the other one is open, only the rows near the change are affected.
    """
    low, high = affected_by_frame(tree, keys, task, root, size, slot, position)
    place = task[PARAMETER]
    counted = task[START] == ROW or task[STOP] == ROW
    if counted:
        offset = task[STOP_AT] if place < 0 else task[START_AT]
        from_here, other = (task[STOP], task[START]) if place < 0 else (task[START], task[STOP])
        if from_here == ROW and other == UNBOUNDED:
            reach = abs(offset) + max(place, 1)
            return max(low, position - reach), min(high, position + reach)
        if place > 0 and task[START] == UNBOUNDED and task[STOP_AT] >= 0 and place <= position:
            return 0, -1
        return low, high
    neighbour = position - place if place > 0 else position + 1 if inserted else position
    if neighbour < 0 or neighbour >= size:
        return low, high
    found = kth(tree, root, neighbour) // keys.stride
    first, last = affected_by_frame(tree, keys, task, root, size, found, neighbour)
    return (max(low, last + 1), high) if place > 0 else (low, min(high, first - 1))


@kernel
def _write_step(steps: Ints, used: int, task: int, slot: int, enters: int, group: int) -> int:
    at = used * ENTRY
    steps[at] = task
    steps[at + 1] = 2 * slot + enters
    steps[at + 2] = -1
    steps[at + 3] = 0
    steps[at + 4] = group
    return used + 1


@kernel
def _complete(steps: Ints, used: int, task: int, rows: int, versions: Ints) -> int:
    """Make the last step complete a version; returns its number."""
    at = (used - 1) * ENTRY
    if steps[at + 2] < 0:
        steps[at + 2] = versions[task]
        steps[at + 3] = rows
        versions[task] += 1
    version: int = steps[at + 2]
    return version


@kernel
def follow(kept: Ints, at: int, position: int, arrives: bool) -> bool:
    """Move the kept frame with a row that arrives or ends at this position; returns whether the row enters or leaves it."""
    begin, end = kept[at], kept[at + 1]
    if arrives:
        if position <= begin:
            kept[at] += 1
            kept[at + 1] += 1
            if begin == end == position == 0:
                kept[at] = kept[at + 1] = 0
            return False
        if position >= end:
            return False
        kept[at + 1] += 1
        return True
    if position < begin:
        kept[at] -= 1
        kept[at + 1] -= 1
        return False
    if position >= end:
        return False
    kept[at + 1] -= 1
    return True


@kernel
def note_change(
    kept: Ints, at: int, position: int, slot: int, arrives: bool, task: int, group: int, steps: Ints, used: int
) -> int:
    """Write the step of a row that arrives in, or leaves, the kept frame; there is room for it."""
    if follow(kept, at, position, arrives):
        return _write_step(steps, used, task, slot, 1 if arrives else 0, group + 1)
    return used


@kernel
def _cross(
    tree: WideNodes, keys: Keys, root: int, first: int, stop: int, task: int, enters: int, group: int, steps: Ints, used: int
) -> tuple[Ints, int]:  # fmt: skip
    """Let the rows at positions [first, stop) enter or leave."""
    if stop <= first:
        return steps, used
    slots = np.empty(stop - first, np.int64)
    collect(tree, root, first, stop - first, keys.stride, slots)
    steps = grown(steps, (used + len(slots)) * ENTRY)
    for index in range(len(slots)):
        used = _write_step(steps, used, task, slots[index], enters, group)
    return steps, used


@kernel
def _distance(begin: int, end: int, start: int, stop: int) -> int:
    """The rows that enter and leave between one frame and another."""
    if start >= end or stop <= begin:
        return end - begin + stop - start
    return abs(start - begin) + abs(stop - end)


@kernel
def sweep(
    tree: WideNodes, keys: Keys, task: Ints, number: int, group: int, root: int, size: int, low: int, rows: Ints, now: int,
    out: Ints, used: int, steps: Ints, step_count: int, versions: Ints, kept: Ints, at: int,
) -> tuple[int, Ints, int]:  # fmt: skip
    """Entries of consecutive rows: one frame slides over theirs.

    If the frames have many more rows than are to be evaluated, it is the frame that is kept with its accumulators, which goes
    on from where it was: rows that arrive in order cost what enters and leaves. Else it begins empty, and is emptied.
    """
    count = len(rows)
    first_start, first_stop = frame_of(tree, keys, task, root, size, rows[0], low)
    last_start, last_stop = frame_of(tree, keys, task, root, size, rows[count - 1], low + count - 1)
    begin = end = first_start
    source, backward = 0, False
    if task[PARAMETER] and first_stop - first_start + last_stop - last_start > 2 * count:
        onward = _distance(kept[at], kept[at + 1], first_start, first_stop)
        back = _distance(kept[at], kept[at + 1], last_start, last_stop)
        source, backward = group + 1, back < onward
        begin, end = kept[at], kept[at + 1]
    start, stop = (last_start, last_stop) if backward else (first_start, first_stop)
    version = -1 if source > 0 else 0
    before = step_count
    if start >= end or stop <= begin:
        steps, step_count = _cross(tree, keys, root, begin, end, number, 0, source, steps, step_count)
        begin = end = start
    steps, step_count = _cross(tree, keys, root, end, stop, number, 1, source, steps, step_count)
    steps, step_count = _cross(tree, keys, root, start, begin, number, 1, source, steps, step_count)
    steps, step_count = _cross(tree, keys, root, begin, start, number, 0, source, steps, step_count)
    steps, step_count = _cross(tree, keys, root, stop, end, number, 0, source, steps, step_count)
    begin, end = start, stop
    at_starts = np.empty(last_start - first_start, np.int64)
    collect(tree, root, first_start, len(at_starts), keys.stride, at_starts)
    at_stops = np.empty(last_stop - first_stop, np.int64)
    collect(tree, root, first_stop, len(at_stops), keys.stride, at_stops)
    steps = grown(steps, (step_count + 2 * (len(at_starts) + len(at_stops)) + 2) * ENTRY)
    for index in range(count):
        row = count - 1 - index if backward else index
        if index > 0:
            start, stop = frame_of(tree, keys, task, root, size, rows[row], low + row)
        if backward:
            if stop <= begin:
                while end > begin:
                    end -= 1
                    step_count = _write_step(steps, step_count, number, at_stops[end - first_stop], 0, source)
                begin = end = stop
            while begin > start:
                begin -= 1
                step_count = _write_step(steps, step_count, number, at_starts[begin - first_start], 1, source)
            while end > stop:
                end -= 1
                step_count = _write_step(steps, step_count, number, at_stops[end - first_stop], 0, source)
        else:
            if start >= end:
                while begin < end:
                    step_count = _write_step(steps, step_count, number, at_starts[begin - first_start], 0, source)
                    begin += 1
                begin = end = start
            while end < stop:
                step_count = _write_step(steps, step_count, number, at_stops[end - first_stop], 1, source)
                end += 1
            while begin < start:
                step_count = _write_step(steps, step_count, number, at_starts[begin - first_start], 0, source)
                begin += 1
        if begin == end:
            version = 0
        elif step_count > before:
            version = _complete(steps, step_count, number, end - begin, versions)
        elif version < 0:
            # The kept frame is that of the row: a step there and back has its value.
            slot = kth(tree, root, begin) // keys.stride
            step_count = _write_step(steps, step_count, number, slot, 0, source)
            step_count = _write_step(steps, step_count, number, slot, 1, source)
            version = _complete(steps, step_count, number, end - begin, versions)
        before = step_count
        used = write_entry(out, used, now, number, rows[row], version, 0)
    if source > 0:
        kept[at] = begin
        kept[at + 1] = end
    else:
        steps, step_count = _cross(tree, keys, root, begin, end, number, 0, 0, steps, step_count)
    return used, steps, step_count
