"""The loop of the first ranks: of a tree of all live rows, those that have a rank, or a dense rank, up to a limit.

Rows that are equal in the order (peers) are in the output together. It ends with the peers of one row, the *last* one.
"""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.top_k import LAST, ROOT, drop_beaten, emit_marked, mark
from sash.operators.kernels.treap import SIZE, compare
from sash.operators.kernels.wide_tree import WideNodes, count, delete, has_room, insert, kth
from sash.operators.kernels.window_search import Keys, are_peers, peers_start, peers_stop
from sash.state.changes import Signs
from sash.state.jit import grown, kernel
from sash.state.memory import Ints


@kernel
def advance_ranks(
    begin: int, ts: Ints, sign: Signs, slots: Ints, groups: Ints, tree: WideNodes, keys: Keys, ends: Ints, marks: Ints,
    beaten: Ints, limit: int, dense: bool,
) -> tuple[int, Ints, Signs, Ints]:  # fmt: skip
    """Apply events as `advance` of top-k does; the output are the rows with ranks, or dense ranks, up to `limit`.

    LAST of a group is the last row + 1. If all rows are in the output, it is minus the number of different values.
    """
    n = len(ts)
    out_ts = np.empty(2 * (n - begin), np.int64)
    out_sign = np.empty(2 * (n - begin), np.int8)
    out_slots = np.empty(2 * (n - begin), np.int64)
    touched = np.empty(64, np.int64)
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
        if sign[event] > 0:
            ends[root] = insert(tree, ends[root], node)
            if not _behind(tree, keys, ends[last] - 1, node):
                touched = grown(touched, pending + 1)
                pending = mark(marks, node, 1, touched, pending)
                first, stop, ends[last] = _after_insert(tree, keys, ends[root], ends[last], node, limit, dense)
                touched, pending = _mark_all(tree, ends[root], first, stop, -1, marks, touched, pending)
            if len(beaten) > 0:
                beaten[node] = 0
                behind = peers_stop(tree, keys, ends[root], node)
                ends[root] = drop_beaten(tree, ends[root], behind, beaten, limit)
        elif tree.keys.cells[node, SIZE] > 0:
            if _behind(tree, keys, ends[last] - 1, node):
                ends[root] = delete(tree, ends[root], node)
            else:
                touched = grown(touched, pending + 1)
                pending = mark(marks, node, -1, touched, pending)
                size = count(tree, ends[root])
                if ends[last] > 0:
                    size = peers_stop(tree, keys, ends[root], ends[last] - 1)
                ends[root] = delete(tree, ends[root], node)
                stop, ends[last] = _after_delete(tree, keys, ends[root], ends[last], node, size - 1, limit, dense)
                touched, pending = _mark_all(tree, ends[root], size - 1, stop, 1, marks, touched, pending)
        if event + 1 < n and ts[event + 1] == ts[event]:
            continue
        out_ts = grown(out_ts, changes + pending)
        out_sign = grown(out_sign, changes + pending)
        out_slots = grown(out_slots, changes + pending)
        changes = emit_marked(marks, touched, pending, ts[event], out_ts, out_sign, out_slots, changes)
        pending = 0
    return n, out_ts[:changes], out_sign[:changes], out_slots[:changes]


@kernel
def _behind(tree: WideNodes, keys: Keys, last: int, node: int) -> bool:
    """Whether a row sorts after the output."""
    return last >= 0 and not are_peers(keys, last, node) and compare(tree.keys, last, node) < 0


@kernel
def _after_insert(
    tree: WideNodes, keys: Keys, root: int, last: int, node: int, limit: int, dense: bool
) -> tuple[int, int, int]:
    """The positions of the rows that a new row pushes out of the output, and LAST."""
    if last > 0:
        if are_peers(keys, last - 1, node):
            return 0, 0, last
        start = peers_start(tree, keys, root, last - 1)
        if dense:
            if peers_stop(tree, keys, root, node) - peers_start(tree, keys, root, node) > 1:
                return 0, 0, last
        elif start < limit:
            return 0, 0, last
        return start, peers_stop(tree, keys, root, last - 1), kth(tree, root, start - 1) + 1
    size = count(tree, root)
    if not dense:
        return 0, 0, kth(tree, root, limit - 1) + 1 if size >= limit else 0
    if peers_stop(tree, keys, root, node) - peers_start(tree, keys, root, node) == 1:
        last -= 1
    return 0, 0, kth(tree, root, size - 1) + 1 if -last == limit else last


@kernel
def _after_delete(
    tree: WideNodes, keys: Keys, root: int, last: int, node: int, size: int, limit: int, dense: bool
) -> tuple[int, int]:
    """The end of the output after a row of it has ended, of which `size` rows are left; and LAST."""
    total = count(tree, root)
    if not dense:
        if total < limit:
            return size, 0
        edge = kth(tree, root, limit - 1)
        return peers_stop(tree, keys, root, edge), edge + 1
    first = peers_start(tree, keys, root, node)
    if peers_stop(tree, keys, root, node) > first:
        return size, kth(tree, root, first) + 1 if last - 1 == node else last
    if last <= 0:
        return size, last + 1
    if size == total:
        return size, 1 - limit
    edge = kth(tree, root, size)
    return peers_stop(tree, keys, root, edge), edge + 1


@kernel
def _mark_all(
    tree: WideNodes, root: int, first: int, stop: int, change: int, marks: Ints, touched: Ints, pending: int
) -> tuple[Ints, int]:
    """Mark the rows at some positions."""
    if first < stop:
        touched = grown(touched, pending + stop - first)
    for position in range(first, stop):
        pending = mark(marks, kth(tree, root, position), change, touched, pending)
    return touched, pending
