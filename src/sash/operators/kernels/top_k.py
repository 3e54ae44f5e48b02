"""The loop of top-k: a tree of all live rows in order, of which a range of ranks is the output."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.treap import Nodes, compare, count, delete, insert, kth, rank
from sash.state.changes import Signs
from sash.state.jit import kernel
from sash.state.memory import Ints

ROOT, LAST = 0, 1
"""State of each group: the root of its tree, and the row at the last rank of the output (+ 1, 0 if there is none)."""


@kernel
def advance(
    ts: Ints, sign: Signs, slots: Ints, groups: Ints, tree: Nodes, ends: Ints, marks: Ints, first: int, stop: int
) -> tuple[Ints, Signs, Ints]:
    """Apply events in time order; returns the changes (times, signs, slots) of the rows at ranks [first, stop) of each group.

    `marks` is zero for every slot before and after the call.
    """
    n = len(ts)
    out_ts = np.empty(2 * n, np.int64)
    out_sign = np.empty(2 * n, np.int8)
    out_slots = np.empty(2 * n, np.int64)
    touched = np.empty(2 * n, np.int64)
    changes = pending = 0
    for event in range(n):
        node = slots[event]
        root, last = 2 * groups[event] + ROOT, 2 * groups[event] + LAST
        if _behind(tree, ends[last] - 1, node):
            if sign[event] > 0:
                ends[root] = insert(tree, ends[root], node)
            else:
                ends[root] = delete(tree, ends[root], node)
        else:
            position = rank(tree, ends[root], node)
            if sign[event] > 0:
                ends[root] = insert(tree, ends[root], node)
            # With the row in the tree, the rows at ranks first and stop cross the two ends of the output.
            total = count(tree, ends[root])
            if position >= first:
                pending = _mark(marks, node, sign[event], touched, pending)
            elif total > first:
                pending = _mark(marks, kth(tree, ends[root], first), sign[event], touched, pending)
            if total > stop:
                pending = _mark(marks, kth(tree, ends[root], stop), -sign[event], touched, pending)
            if sign[event] < 0:
                ends[root] = delete(tree, ends[root], node)
            total = count(tree, ends[root])
            ends[last] = kth(tree, ends[root], stop - 1) + 1 if total >= stop else 0
        if event + 1 < n and ts[event + 1] == ts[event]:
            continue
        for change in (-1, 1):
            for index in range(pending):
                if marks[touched[index]] == 2 + change:
                    out_ts[changes], out_sign[changes], out_slots[changes] = ts[event], change, touched[index]
                    changes += 1
        for index in range(pending):
            marks[touched[index]] = 0
        pending = 0
    return out_ts[:changes], out_sign[:changes], out_slots[:changes]


@kernel
def _behind(tree: Nodes, last: int, node: int) -> bool:
    """Whether a row sorts after the last row of the output, so that it cannot change the output."""
    if last < 0:
        return False
    order = compare(tree, last, node)
    return order < 0 or (order == 0 and last < node)


@kernel
def _mark(marks: Ints, node: int, change: int, touched: Ints, pending: int) -> int:
    """Mark a row as added or removed at this instant (2 means no change); returns the number of marked rows."""
    if marks[node] == 0:
        marks[node] = 2
        touched[pending] = node
        pending += 1
    marks[node] += change
    return pending
