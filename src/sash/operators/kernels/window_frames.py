"""Frames of window functions: their positions, the rows that a change affects, and the steps from one frame to the next."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.wide_tree import WideNodes, collect
from sash.operators.kernels.window_search import Keys, count_below, peers_start, peers_stop
from sash.operators.kernels.window_tasks import (
    ENTRY,
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
def sweep_inner(
    tree: WideNodes, keys: Keys, task: Ints, number: int, root: int, size: int, low: int, rows: Ints, now: int, out: Ints,
    used: int, steps: Ints, step_count: int, versions: Ints,
) -> tuple[int, Ints, int]:  # fmt: skip
    """Entries of consecutive rows whose frames are bounded on both sides: one frame slides over them, from empty to empty."""
    first, _ = frame_of(tree, keys, task, root, size, rows[0], low)
    last_start, last = frame_of(tree, keys, task, root, size, rows[len(rows) - 1], low + len(rows) - 1)
    span = max(last, last_start) - first
    slots = np.empty(span, np.int64)
    if span > 0:
        collect(tree, root, first, span, keys.stride, slots)
    steps = grown(steps, (step_count + 2 * span) * ENTRY)
    begin = end = first
    version = 0
    for index in range(len(rows)):
        start, stop = frame_of(tree, keys, task, root, size, rows[index], low + index)
        before = step_count
        if start >= end:
            while begin < end:
                step_count = _write_step(steps, step_count, number, slots[begin - first], 0, 0)
                begin += 1
            begin = end = start
        while end < stop:
            step_count = _write_step(steps, step_count, number, slots[end - first], 1, 0)
            end += 1
        while begin < start:
            step_count = _write_step(steps, step_count, number, slots[begin - first], 0, 0)
            begin += 1
        if step_count > before:
            version = _complete(steps, step_count, number, end - begin, versions)
        used = write_entry(out, used, now, number, rows[index], version, 0)
    while begin < end:
        step_count = _write_step(steps, step_count, number, slots[begin - first], 0, 0)
        begin += 1
    return used, steps, step_count


@kernel
def sweep_half(
    tree: WideNodes, keys: Keys, task: Ints, number: int, group: int, root: int, size: int, low: int, high: int, now: int,
    out: Ints, used: int, steps: Ints, step_count: int, versions: Ints,
) -> tuple[int, Ints, int]:  # fmt: skip
    """Entries of consecutive rows whose frames begin, or end, with their partition.

    The last step is a change of the partition, whose state is kept. From there rows leave until the frames of the rows wanted
    for are complete, and enter again.
    """
    backward = task[START] == UNBOUNDED
    rows = high - low + 1
    wanted = np.empty(rows, np.int64)
    collect(tree, root, low, rows, keys.stride, wanted)
    # Going backward, frames are [0, edge); going forward, [edge, size).
    if backward:
        _, first = frame_of(tree, keys, task, root, size, wanted[0], low)
        base, span = first, size - first
        edge = size
    else:
        last, _ = frame_of(tree, keys, task, root, size, wanted[rows - 1], high)
        base, span = 0, last
        edge = 0
    slots = np.empty(span, np.int64)
    if span > 0:
        collect(tree, root, base, span, keys.stride, slots)
    steps = grown(steps, (step_count + 2 * span) * ENTRY)
    for index in range(rows):
        row = rows - 1 - index if backward else index
        start, stop = frame_of(tree, keys, task, root, size, wanted[row], low + row)
        if backward:
            while edge > stop:
                edge -= 1
                step_count = _write_step(steps, step_count, number, slots[edge - base], 0, group + 1)
            version = _complete(steps, step_count, number, edge, versions)
        else:
            while edge < start:
                step_count = _write_step(steps, step_count, number, slots[edge - base], 0, group + 1)
                edge += 1
            version = _complete(steps, step_count, number, size - edge, versions)
        used = write_entry(out, used, now, number, wanted[row], version, 0)
    if backward:
        for position in range(edge, size):
            step_count = _write_step(steps, step_count, number, slots[position - base], 1, group + 1)
    else:
        for position in range(edge):
            step_count = _write_step(steps, step_count, number, slots[edge - 1 - position], 1, group + 1)
    return used, steps, step_count
