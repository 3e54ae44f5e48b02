"""MIN and MAX over frames: the smallest value of a range of positions, in trees whose blocks know their smallest values.

A row has a node in the tree of its function if it has a value; that of MAX is the complement. A new row changes the answers
of those rows only whose frames have no other value as small. Frames are in the order of rows, so these are the rows between
the nearest such values on both sides: what is evaluated is what changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from sash.operators.kernels.treap import RIGHT as VALUE
from sash.operators.kernels.wide_tree import (
    CAPACITY,
    CHILD,
    COUNT,
    HEAD,
    LEAST,
    LEVEL,
    USED,
    WIDE,
    WideNodes,
    count,
    kth,
    rank,
)
from sash.operators.kernels.window_frames import affected_by_frame, frame_of
from sash.operators.kernels.window_search import Keys
from sash.operators.kernels.window_tasks import ROW, START, STOP, STOP_AT, TREE, UNBOUNDED, write_entry
from sash.state.jit import kernel, uncounted
from sash.state.memory import Ints

_LARGEST: Final = 2**63 - 1


@uncounted
def least_between(tree: WideNodes, root: int, start: int, stop: int) -> int:
    """The smallest value at positions [start, stop), of which there is one."""
    blocks = tree.blocks
    least = _LARGEST
    while start < stop:
        here, first = root, 0
        while blocks[here + LEVEL] > 0:
            index = 0
            counts = here + HEAD + COUNT * WIDE
            while first + blocks[counts + index] <= start:
                first += blocks[counts + index]
                index += 1
            if first < start or first + blocks[counts + index] > stop:
                here = blocks[here + HEAD + CHILD * WIDE + index]
                continue
            while index < blocks[here + USED] and start + blocks[counts + index] <= stop:
                least = min(least, blocks[here + HEAD + LEAST * WIDE + index])
                start += blocks[counts + index]
                index += 1
            break
        if blocks[here + LEVEL] == 0:
            values = here + HEAD + LEAST * blocks[here + CAPACITY] - first
            end = min(stop, first + blocks[here + USED])
            for at in range(start, end):
                least = min(least, blocks[values + at])
            start = end
    return least


@uncounted
def first_at_most(tree: WideNodes, root: int, start: int, bound: int) -> int:
    """The first position from `start` on with a value up to `bound`; the number of rows if there is none."""
    blocks = tree.blocks
    size = count(tree, root)
    while start < size:
        here, first = root, 0
        while blocks[here + LEVEL] > 0:
            index = 0
            counts, values = here + HEAD + COUNT * WIDE, here + HEAD + LEAST * WIDE
            while index < blocks[here + USED] and (
                first + blocks[counts + index] <= start or blocks[values + index] > bound
            ):
                first += blocks[counts + index]
                index += 1
            start = max(start, first)
            if index == blocks[here + USED]:
                break
            here = blocks[here + HEAD + CHILD * WIDE + index]
        if blocks[here + LEVEL] == 0:
            values = here + HEAD + LEAST * blocks[here + CAPACITY] - first
            end = first + blocks[here + USED]
            while start < end:
                if blocks[values + start] <= bound:
                    return start
                start += 1
    return size


@uncounted
def last_at_most(tree: WideNodes, root: int, stop: int, bound: int) -> int:
    """The last position before `stop` with a value up to `bound`; -1 if there is none."""
    blocks = tree.blocks
    while stop > 0:
        here, end = root, count(tree, root)
        while blocks[here + LEVEL] > 0:
            index = blocks[here + USED] - 1
            counts, values = here + HEAD + COUNT * WIDE, here + HEAD + LEAST * WIDE
            while index >= 0 and (end - blocks[counts + index] >= stop or blocks[values + index] > bound):
                end -= blocks[counts + index]
                index -= 1
            stop = min(stop, end)
            if index < 0:
                break
            here = blocks[here + HEAD + CHILD * WIDE + index]
        if blocks[here + LEVEL] == 0:
            first = end - blocks[here + USED]
            values = here + HEAD + LEAST * blocks[here + CAPACITY] - first
            stop = min(stop, end)
            while stop > first:
                stop -= 1
                if blocks[values + stop] <= bound:
                    return stop
    return -1


@kernel
def affected_by_extreme(
    tree: WideNodes, keys: Keys, roots: Ints, member: npt.NDArray[np.int8], task: Ints, group: int, size: int, slot: int,
    inserted: bool, position: int, alone: bool,
) -> tuple[int, int]:  # fmt: skip
    """The positions of other rows whose smallest value may change with a row that entered or left at this position.

    A frame is hidden from the row if it has another value as small: the nearest ones on both sides bound the rows whose
    frames have none. Rows with equal values that arrive at one instant do not hide each other. Where a bound counts rows, a
    new row also moves others into and out of frames, so that all of these rows may change.
    """
    root = roots[group * keys.stride]
    low, high = affected_by_frame(tree, keys, task, root, size, slot, position)
    counted = task[START] == ROW or (task[STOP] == ROW and (task[START] != UNBOUNDED or task[STOP_AT] != 0))
    if counted:
        return low, high
    node = slot * keys.stride + task[TREE]
    if member[node] == 0:
        return 0, -1
    top = roots[group * keys.stride + task[TREE]]
    value = tree.keys.cells[node, VALUE]
    if value == -_LARGEST - 1:
        return low, high
    bound = value if alone or not inserted else value - 1
    place = rank(tree, top, node)
    before = last_at_most(tree, top, place, bound)
    after = first_at_most(tree, top, place + 1 if inserted else place, bound)
    if before >= 0:
        low = max(low, _frames_with(tree, keys, task, root, size, kth(tree, top, before) // keys.stride)[1] + 1)
    if after < count(tree, top):
        high = min(high, _frames_with(tree, keys, task, root, size, kth(tree, top, after) // keys.stride)[0] - 1)
    return low, high


@kernel
def _frames_with(tree: WideNodes, keys: Keys, task: Ints, root: int, size: int, slot: int) -> tuple[int, int]:
    """The positions of the rows whose frames have a row of the tree."""
    return affected_by_frame(tree, keys, task, root, size, slot, rank(tree, root, slot * keys.stride))


@kernel
def extreme_rows(
    tree: WideNodes, keys: Keys, roots: Ints, member: npt.NDArray[np.int8], task: Ints, number: int, group: int,
    size: int, low: int, rows: Ints, now: int, out: Ints, used: int,
) -> int:  # fmt: skip
    """Entries of MIN or MAX for consecutive rows: the smallest value, and 1 if there is one."""
    stride, k = keys.stride, task[TREE]
    root, top = roots[group * stride], roots[group * stride + k]
    last_first, last_stop, least, found = -1, -1, 0, 0
    for index in range(len(rows)):
        start, stop = frame_of(tree, keys, task, root, size, rows[index], low + index)
        if start == last_first and stop == last_stop:
            used = write_entry(out, used, now, number, rows[index], least, found)
            continue
        running = start == last_first and stop > last_stop and found > 0
        begin = last_stop if running else start
        last_first, last_stop = start, stop
        if begin < stop:
            from_node = kth(tree, root, begin) + k
            to_slot = kth(tree, root, stop - 1) // stride
            first = rank(tree, top, from_node)
            end = rank(tree, top, to_slot * stride + k) + member[to_slot * stride + k]
            if first < end:
                value = least_between(tree, top, first, end)
                least = min(least, value) if running else value
                found = 1
            elif not running:
                least, found = 0, 0
        else:
            least, found = 0, 0
        used = write_entry(out, used, now, number, rows[index], least, found)
    return used
