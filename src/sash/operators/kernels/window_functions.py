"""The loop of window functions: rows enter and leave ordered trees, and at each instant the rows affected are evaluated.

The changes of an instant are applied to a partition's trees first. Then every task (a function, or a frame that aggregates
share) has its affected positions computed from the positions of these changes, and the rows there are evaluated. Results
are *entries* (ts, task, slot, value, divisor): a number, or the row that the function points to. Aggregates are not computed
here: the loop outputs *steps*, the rows that enter and leave frames, with the versions at which a frame is complete.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sash.operators.kernels.treap import SIZE
from sash.operators.kernels.wide_tree import WideNodes, collect, count, delete, has_room, insert, kth, rank
from sash.operators.kernels.window_buckets import bucket_of, near_borders
from sash.operators.kernels.window_extremes import affected_by_extreme, extreme_rows
from sash.operators.kernels.window_frames import affected_by_frame, affected_by_pick, frame_of, note_change, sweep
from sash.operators.kernels.window_search import Keys, are_peers, peers_start, peers_stop
from sash.operators.kernels.window_tasks import (
    CUME_DIST,
    DENSE_RANK,
    ENTRY,
    EXTREME,
    KIND,
    NTILE,
    PARAMETER,
    PERCENT_RANK,
    PICK,
    RANK,
    ROW_NUMBER,
    SHIFT,
    SWEEP,
    TREE,
    WHOLE,
    write_entry,
)
from sash.state.changes import Signs
from sash.state.jit import grown, kernel
from sash.state.memory import Ints

Mask = npt.NDArray[np.bool_]
Tasks = npt.NDArray[np.int64]


class Trees(NamedTuple):
    """The trees of one order. `roots` are by group and tree; `member`, by node, is 1 if the row belongs to that tree; tree
    `distinct` (0: there is none) has one row of each set of peers. `kept`, by group and task, are the positions of the frame
    that is kept with its accumulators."""

    tree: WideNodes
    keys: Keys
    roots: Ints
    member: npt.NDArray[np.int8]
    distinct: int
    kept: Ints


@kernel
def advance(
    begin: int, end: int, most: int, ts: Ints, sign: Signs, slots: Ints, groups: Ints,
    trees: Trees, tasks: Tasks, whole_changed: Mask, whole_version: Ints, heads: Ints, links: Ints, versions: Ints,
) -> tuple[int, Ints, Ints]:  # fmt: skip
    """Apply events from `begin` on, until `end`, until there are `most` entries, or before an instant for whose rows there is no
    room; returns where it stopped, entries, steps.

    `heads` is zero for every group before and after. `whole_changed` and `whole_version`, by event, say whether the value of
    a whole partition changed at its instant, and which version it has now.
    """
    out = np.empty(1024 * ENTRY, np.int64)
    steps = np.empty(1024 * ENTRY, np.int64)
    used = step_count = 0
    touched = np.empty(end - begin, np.int64)
    distinct_changed = np.zeros(end - begin, np.bool_)
    lows = np.empty(16, np.int64)
    highs = np.empty(16, np.int64)
    row_slots = np.empty(64, np.int64)
    keeps = False
    for number in range(len(tasks)):
        keeps |= tasks[number, KIND] == SWEEP and tasks[number, PARAMETER] != 0
    event = begin
    while event < end and used < most:
        start = event
        now = ts[event]
        partitions = 0
        stop = event + 1
        while stop < end and ts[stop] == now:
            stop += 1
        if not has_room(trees.tree, (stop - event) * trees.keys.stride):
            break
        while event < end and ts[event] == now:
            group = groups[event]
            distinct_changed[event - begin] = _apply(trees, group, slots[event], sign[event])
            if keeps:
                position = rank(trees.tree, trees.roots[group * trees.keys.stride], slots[event] * trees.keys.stride)
                steps = grown(steps, (step_count + len(tasks)) * ENTRY)
                for number in range(len(tasks)):
                    if tasks[number, KIND] == SWEEP and tasks[number, PARAMETER]:
                        step_count = note_change(
                            trees.kept, 2 * (group * len(tasks) + number), position, slots[event], sign[event] > 0,
                            number, group, steps, step_count,
                        )  # fmt: skip
            if heads[group] == 0:
                touched[partitions] = group
                partitions += 1
            links[event - start] = heads[group]
            heads[group] = event + 1
            event += 1
        for index in range(partitions):
            group = touched[index]
            root = trees.roots[group * trees.keys.stride]
            size = count(trees.tree, root)
            arrivals = departures = 0
            link = heads[group]
            while link != 0:
                arrivals += sign[link - 1] > 0
                departures += sign[link - 1] < 0
                link = links[link - 1 - start]
            for number in range(len(tasks)):
                task = tasks[number]
                intervals = 0
                link = heads[group]
                everything = False
                whole, least, last = -1, size, 0
                while link != 0:
                    change = link - 1
                    if intervals + 2 > len(lows):
                        lows = grown(lows, intervals + 2)
                        highs = grown(highs, intervals + 2)
                    position = rank(trees.tree, root, slots[change] * trees.keys.stride)
                    if sign[change] > 0:
                        lows[intervals] = position
                        highs[intervals] = position
                        intervals += 1
                    if task[KIND] == WHOLE:
                        everything |= whole_changed[change]
                        whole = max(whole, whole_version[change])
                    elif task[KIND] == NTILE:
                        least, last = min(least, position), max(last, position)
                    else:
                        low, high = _affected(
                            trees, task, group, root, size, slots[change], sign[change] > 0, position,
                            distinct_changed[change - begin], arrivals < 2,
                        )  # fmt: skip
                        low, high = max(low, 0), min(high, size - 1)
                        if low <= high:
                            lows[intervals] = low
                            highs[intervals] = high
                            intervals += 1
                    link = links[change - start]
                if task[KIND] == NTILE and size > 0:
                    lows, highs, intervals = near_borders(
                        size, size - arrivals + departures, task[PARAMETER], arrivals + departures, least, last,
                        lows, highs, intervals,
                    )  # fmt: skip
                if everything:
                    lows[0] = 0
                    highs[0] = size - 1
                    intervals = 1
                if size == 0 or intervals == 0:
                    continue
                intervals = _merge(lows, highs, intervals)
                for interval in range(intervals):
                    low, high = lows[interval], highs[interval]
                    rows = high - low + 1
                    out = grown(out, (used + rows) * ENTRY)
                    if rows > len(row_slots):
                        row_slots = grown(row_slots, rows)
                    collect(trees.tree, root, low, rows, trees.keys.stride, row_slots)
                    if task[KIND] == SWEEP:
                        used, steps, step_count = sweep(
                            trees.tree, trees.keys, task, number, group, root, size, low, row_slots[:rows], now, out, used,
                            steps, step_count, versions, trees.kept, 2 * (group * len(tasks) + number),
                        )  # fmt: skip
                    elif task[KIND] == WHOLE:
                        for row in range(rows):
                            used = write_entry(out, used, now, number, row_slots[row], whole, 0)
                    elif task[KIND] <= NTILE:
                        used = _rank_rows(trees, task, number, group, root, size, low, row_slots[:rows], now, out, used)
                    elif task[KIND] == EXTREME:
                        used = extreme_rows(
                            trees.tree, trees.keys, trees.roots, trees.member, task, number, group, size, low,
                            row_slots[:rows], now, out, used,
                        )  # fmt: skip
                    else:
                        used = _point(trees, task, number, group, root, size, low, row_slots[:rows], now, out, used)
        for index in range(partitions):
            heads[touched[index]] = 0
    return event, out[: used * ENTRY], steps[: step_count * ENTRY]


@kernel
def _apply(trees: Trees, group: int, slot: int, sign: int) -> bool:
    """Insert or delete a row in the trees it belongs to; returns whether the set of different values in the order changed."""
    stride = trees.keys.stride
    at = group * stride
    node = slot * stride
    for k in range(stride):
        if k != 0 and (k == trees.distinct or trees.member[node + k] == 0):
            continue
        if sign > 0:
            trees.roots[at + k] = insert(trees.tree, trees.roots[at + k], node + k)
        else:
            trees.roots[at + k] = delete(trees.tree, trees.roots[at + k], node + k)
    if trees.distinct == 0:
        return False
    own = node + trees.distinct
    first = peers_start(trees.tree, trees.keys, trees.roots[at], slot)
    peers = peers_stop(trees.tree, trees.keys, trees.roots[at], slot) - first
    top = at + trees.distinct
    if sign > 0:
        if peers > 1:
            return False
        trees.roots[top] = insert(trees.tree, trees.roots[top], own)
        return True
    if trees.tree.keys.cells[own, SIZE] == 0:
        return False
    trees.roots[top] = delete(trees.tree, trees.roots[top], own)
    if peers == 0:
        return True
    other = kth(trees.tree, trees.roots[at], first) + trees.distinct
    trees.roots[top] = insert(trees.tree, trees.roots[top], other)
    return False


@kernel
def _affected(
    trees: Trees, task: Ints, group: int, root: int, size: int, slot: int, inserted: bool, position: int, distinct: bool,
    alone: bool,
) -> tuple[int, int]:  # fmt: skip
    """The positions of other rows whose value may change with a row that entered or left at this position; `alone` if
    at most one row entered the partition at this instant."""
    kind = task[KIND]
    if kind == ROW_NUMBER:
        return position, size - 1
    if kind in (RANK, DENSE_RANK):
        if kind == DENSE_RANK and not distinct:
            return 0, -1
        return peers_stop(trees.tree, trees.keys, root, slot), size - 1
    if kind <= NTILE:
        return 0, size - 1
    if kind == EXTREME:
        return affected_by_extreme(
            trees.tree, trees.keys, trees.roots, trees.member, task, group, size, slot, inserted, position, alone
        )
    if kind == SHIFT:
        return _affected_by_shift(trees, task, group, root, size, slot, position)
    if kind == PICK and task[TREE] == 0:
        return affected_by_pick(trees.tree, trees.keys, task, root, size, slot, inserted, position)
    return affected_by_frame(trees.tree, trees.keys, task, root, size, slot, position)


@kernel
def _affected_by_shift(
    trees: Trees, task: Ints, group: int, root: int, size: int, slot: int, position: int
) -> tuple[int, int]:
    distance = task[PARAMETER]
    stride, k = trees.keys.stride, task[TREE]
    if k == 0 or distance == 0:
        return position - max(distance, 0), position + max(-distance, 0)
    if trees.member[slot * stride + k] == 0:
        return 0, -1
    top = trees.roots[group * stride + k]
    before = rank(trees.tree, top, slot * stride + k)
    if distance > 0:
        if before < distance:
            return 0, position
        return rank(trees.tree, root, kth(trees.tree, top, before - distance) - k), position
    if before - distance >= count(trees.tree, top):
        return position, size - 1
    return position, rank(trees.tree, root, kth(trees.tree, top, before - distance) - k)


@kernel
def _merge(lows: Ints, highs: Ints, intervals: int) -> int:
    """Sort and unite overlapping intervals in place; returns how many are left."""
    if intervals < 2:
        return intervals
    order = np.argsort(lows[:intervals])
    low, high = lows[:intervals][order], highs[:intervals][order]
    last = 0
    lows[0] = low[0]
    highs[0] = high[0]
    for index in range(1, intervals):
        if low[index] <= highs[last] + 1:
            highs[last] = max(highs[last], high[index])
        else:
            last += 1
            lows[last] = low[index]
            highs[last] = high[index]
    return last + 1


@kernel
def _rank_rows(
    trees: Trees, task: Ints, number: int, group: int, root: int, size: int, low: int, rows: Ints, now: int, out: Ints,
    used: int,
) -> int:  # fmt: skip
    """Entries of a ranking function for consecutive rows."""
    kind = task[KIND]
    keys = trees.keys
    first = low
    if kind in (RANK, DENSE_RANK, PERCENT_RANK):
        first = peers_start(trees.tree, keys, root, rows[0])
    dense = 0
    if kind == DENSE_RANK:
        top = trees.roots[group * keys.stride + trees.distinct]
        here = kth(trees.tree, root, first)
        dense = rank(trees.tree, top, here) + 1
    last = -1
    for index in range(len(rows)):
        position = low + index
        if index > 0 and kind in (RANK, DENSE_RANK, PERCENT_RANK) and not are_peers(keys, rows[index - 1], rows[index]):
            first = position
            dense += 1
        value, divisor = position + 1, 0
        if kind == RANK:
            value = first + 1
        elif kind == DENSE_RANK:
            value = dense
        elif kind == PERCENT_RANK:
            value, divisor = first, size - 1
        elif kind == CUME_DIST:
            if position >= last:
                last = peers_stop(trees.tree, keys, root, rows[index])
            value, divisor = last, size
        elif kind == NTILE:
            value = bucket_of(position, size, task[PARAMETER])
        used = write_entry(out, used, now, number, rows[index], value, divisor)
    return used


@kernel
def _point(
    trees: Trees, task: Ints, number: int, group: int, root: int, size: int, low: int, rows: Ints, now: int, out: Ints,
    used: int,
) -> int:  # fmt: skip
    """Entries of LAG, LEAD, FIRST_VALUE ... for consecutive rows: the slot of the row that is pointed to, + 1 (0: none)."""
    stride, k = trees.keys.stride, task[TREE]
    top = trees.roots[group * stride + k]
    for index in range(len(rows)):
        slot, position = rows[index], low + index
        target = -1
        if task[KIND] == SHIFT:
            distance = task[PARAMETER]
            if k == 0 or distance == 0:
                target = position + distance
            else:
                target = rank(trees.tree, top, slot * stride + k) + distance
                if distance > 0 and trees.member[slot * stride + k] == 0:
                    target -= 1
            stop = count(trees.tree, top) if distance != 0 else size
        else:
            start, stop = frame_of(trees.tree, trees.keys, task, root, size, slot, position)
            if k != 0 and start < stop:
                stop_slot = kth(trees.tree, root, stop - 1) // stride
                start = rank(trees.tree, top, kth(trees.tree, root, start) + k)
                stop = rank(trees.tree, top, stop_slot * stride + k) + trees.member[stop_slot * stride + k]
            target = start + task[PARAMETER] - 1 if task[PARAMETER] > 0 else stop - 1
            if target < start:
                target = -1
        found = 0
        if 0 <= target < stop:
            if task[KIND] == SHIFT and task[PARAMETER] == 0:
                found = slot + 1
            elif k == 0 and low <= target < low + len(rows):
                found = rows[target - low] + 1
            else:
                found = kth(trees.tree, top, target) // stride + 1
        used = write_entry(out, used, now, number, slot, found, 0)
    return used
