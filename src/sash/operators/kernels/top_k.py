"""The loop of top-k: a tree of all live rows in order, of which a range of ranks is the output."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.treap import SIZE, compare
from sash.operators.kernels.wide_tree import (
    CAPACITY,
    FIRST,
    HEAD,
    USED,
    WideNodes,
    count,
    delete,
    has_room,
    insert,
    kth,
    leaf_of,
    rank,
)
from sash.state.changes import Signs
from sash.state.jit import kernel
from sash.state.memory import Ints

ROOT, LAST = 0, 1
"""State of each group: the root of its tree, and the row at the last rank of the output (+ 1, 0 if there is none)."""


@kernel
def advance(
    begin: int, ts: Ints, sign: Signs, slots: Ints, groups: Ints, tree: WideNodes, ends: Ints, marks: Ints,
    beaten: Ints, first: int, stop: int,
) -> tuple[int, Ints, Signs, Ints]:  # fmt: skip
    """Apply events in time order; returns the changes (times, signs, slots) of the rows at ranks [first, stop) of each group.

    It begins with the event `begin` and stops before an instant for whose rows there is no room; the first number is that of
    the next event. `marks` is zero for every slot before and after the call.

    If rows end in order of arrival, `beaten` counts by slot the rows that are better and end no earlier (else it is empty). A
    row that has as many of them as there are ranks can never be in the output, and leaves the tree. What remains are few
    rows, unless they arrive from best to worst (the k-skyband of Mouratidis, Bakiras and Papadias, SIGMOD 2006).
    """
    n = len(ts)
    most = 2 * (n - begin)
    out_ts = np.empty(most, np.int64)
    out_sign = np.empty(most, np.int8)
    out_slots = np.empty(most, np.int64)
    touched = np.empty(most, np.int64)
    changes = pending = 0
    for event in range(begin, n):
        if event == begin or ts[event] != ts[event - 1]:
            end = event + 1
            while end < n and ts[end] == ts[event]:
                end += 1
            if not has_room(tree, end - event):
                return event, out_ts[:changes], out_sign[:changes], out_slots[:changes]
        node = slots[event]
        root, last = 2 * groups[event] + ROOT, 2 * groups[event] + LAST
        if sign[event] < 0 and tree.keys.cells[node, SIZE] == 0:
            pass
        elif _behind(tree, ends[last] - 1, node):
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
                pending = mark(marks, node, sign[event], touched, pending)
            elif total > first:
                pending = mark(marks, kth(tree, ends[root], first), sign[event], touched, pending)
            if total > stop:
                pending = mark(marks, kth(tree, ends[root], stop), -sign[event], touched, pending)
            if sign[event] < 0:
                ends[root] = delete(tree, ends[root], node)
            total = count(tree, ends[root])
            ends[last] = kth(tree, ends[root], stop - 1) + 1 if total >= stop else 0
        if len(beaten) > 0 and sign[event] > 0:
            beaten[node] = 0
            ends[root] = drop_beaten(tree, ends[root], rank(tree, ends[root], node) + 1, beaten, stop)
        if event + 1 < n and ts[event + 1] == ts[event]:
            continue
        changes = emit_marked(marks, touched, pending, ts[event], out_ts, out_sign, out_slots, changes)
        pending = 0
    return n, out_ts[:changes], out_sign[:changes], out_slots[:changes]


@kernel
def drop_beaten(tree: WideNodes, root: int, at: int, beaten: Ints, most: int) -> int:
    """Count a new row for the rows behind it, from this position on, and delete those that it makes superfluous; returns the
    root.

    Every row is counted at most `most` times before it is deleted.
    """
    while at < count(tree, root):
        block, index = leaf_of(tree, root, at)
        rows = block + HEAD + FIRST * tree.blocks[block + CAPACITY]
        superfluous = -1
        while index < tree.blocks[block + USED]:
            row = tree.blocks[rows + index]
            beaten[row] += 1
            index += 1
            if beaten[row] >= most:
                superfluous = row
                break
            at += 1
        if superfluous >= 0:
            root = delete(tree, root, superfluous)
    return root


@kernel
def _behind(tree: WideNodes, last: int, node: int) -> bool:
    """Whether a row sorts after the last row of the output, so that it cannot change the output."""
    if last < 0:
        return False
    order = compare(tree.keys, last, node)
    return order < 0 or (order == 0 and last < node)


@kernel
def mark(marks: Ints, node: int, change: int, touched: Ints, pending: int) -> int:
    """Mark a row as added or removed at this instant (2 means no change); returns the number of marked rows."""
    if marks[node] == 0:
        marks[node] = 2
        touched[pending] = node
        pending += 1
    marks[node] += change
    return pending


@kernel
def emit_marked(
    marks: Ints, touched: Ints, pending: int, ts: int, out_ts: Ints, out_sign: Signs, out_slots: Ints, changes: int
) -> int:
    """Write the rows that were removed and then those that were added at this instant, and unmark them; returns the number of
    changes."""
    for change in (-1, 1):
        for index in range(pending):
            if marks[touched[index]] == 2 + change:
                out_ts[changes], out_sign[changes], out_slots[changes] = ts, change, touched[index]
                changes += 1
    for index in range(pending):
        marks[touched[index]] = 0
    return changes
