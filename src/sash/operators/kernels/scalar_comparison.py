"""The loop of comparisons with a scalar: a tree of the rows by what is compared, of which a range of positions passes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from sash.operators.kernels.top_k import emit_marked, mark
from sash.operators.kernels.treap import SIZE, compare
from sash.operators.kernels.wide_tree import WideNodes, collect, count, delete, has_room, insert
from sash.operators.kernels.window_search import Keys, count_before_key
from sash.state.changes import Signs
from sash.state.jit import grown, kernel, uncounted
from sash.state.memory import Ints

LT, LE, GT, GE, EQ, NE = range(6)

ROOT, SCALAR = 0, 1
"""State: the root of the tree, and the node with the key of the scalar (0: it is NULL, or there is none)."""

NODES: Final = 2
"""Row `slot` has node `NODES * slot`; scalars have odd nodes, of which the first is kept from one call to the next."""


@kernel
def advance(
    begin: tuple[int, int], ts: Ints, sign: Signs, slots: Ints, nulls: npt.NDArray[np.int8], scalar_ts: Ints, scalars: Ints,
    comparison: int, tree: WideNodes, keys: Keys, state: Ints, marks: Ints,
) -> tuple[tuple[int, int], Ints, Signs, Ints]:  # fmt: skip
    """Apply the events of rows and the scalar's values (one node, or 0, per instant at which it changes) in time order.

    It begins with the event and the scalar `begin`, and stops before an instant for whose rows there is no room. Returns where
    it stopped, and the changes (times, signs, slots). `marks` is zero for every slot before and after.
    """
    event, change = begin
    out_ts = np.empty(1024, np.int64)
    out_sign = np.empty(1024, np.int8)
    out_slots = np.empty(1024, np.int64)
    touched = np.empty(1024, np.int64)
    changes = 0
    while event < len(ts) or change < len(scalar_ts):
        changed = change < len(scalar_ts) and (event == len(ts) or scalar_ts[change] <= ts[event])
        now = scalar_ts[change] if changed else ts[event]
        stop = event
        while stop < len(ts) and ts[stop] == now:
            stop += 1
        if not has_room(tree, stop - event):
            break
        touched = grown(touched, stop - event)
        pending = 0
        while event < stop:
            slot = slots[event]
            node = NODES * slot
            if sign[event] > 0 and nulls[slot] == 0:
                state[ROOT] = insert(tree, state[ROOT], node)
                if _passes(tree, comparison, node, state[SCALAR]):
                    pending = mark(marks, slot, 1, touched, pending)
            elif sign[event] < 0 and tree.keys.cells[node, SIZE] != 0:
                state[ROOT] = delete(tree, state[ROOT], node)
                if _passes(tree, comparison, node, state[SCALAR]):
                    pending = mark(marks, slot, -1, touched, pending)
            event += 1
        if changed:
            first, last = _inside(tree, keys, comparison, state[ROOT], state[SCALAR])
            state[SCALAR] = scalars[change]
            start, end = _inside(tree, keys, comparison, state[ROOT], state[SCALAR])
            for sides in range(2):
                leaves = sides == 0
                inner, outer = ((start, end), (first, last)) if leaves else ((first, last), (start, end))
                added = -1 if leaves != (comparison == NE) else 1
                for low, high in _difference(outer, inner):
                    if low < high:
                        touched = grown(touched, pending + high - low)
                        flipped = np.empty(high - low, np.int64)
                        collect(tree, state[ROOT], low, high - low, NODES, flipped)
                        for index in range(len(flipped)):
                            pending = mark(marks, flipped[index], added, touched, pending)
            change += 1
        out_ts = grown(out_ts, changes + pending)
        out_sign = grown(out_sign, changes + pending)
        out_slots = grown(out_slots, changes + pending)
        changes = emit_marked(marks, touched, pending, now, out_ts, out_sign, out_slots, changes)
    return (event, change), out_ts[:changes].copy(), out_sign[:changes].copy(), out_slots[:changes].copy()


@uncounted
def _passes(tree: WideNodes, comparison: int, node: int, scalar: int) -> bool:
    if scalar == 0:
        return False
    order = compare(tree.keys, node, scalar)
    if comparison == LT:
        return order < 0
    if comparison == LE:
        return order <= 0
    if comparison == GT:
        return order > 0
    if comparison == GE:
        return order >= 0
    return (order == 0) == (comparison == EQ)


@uncounted
def _inside(tree: WideNodes, keys: Keys, comparison: int, root: int, scalar: int) -> tuple[int, int]:
    """The range of positions of the rows that pass; for `<>`, of those that do not."""
    size = count(tree, root)
    if scalar == 0:
        return 0, size if comparison == NE else 0
    if comparison == LT:
        return 0, count_before_key(tree, keys, root, scalar, False)
    if comparison == LE:
        return 0, count_before_key(tree, keys, root, scalar, True)
    if comparison == GT:
        return count_before_key(tree, keys, root, scalar, True), size
    if comparison == GE:
        return count_before_key(tree, keys, root, scalar, False), size
    return count_before_key(tree, keys, root, scalar, False), count_before_key(tree, keys, root, scalar, True)


@uncounted
def _difference(one: tuple[int, int], other: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The positions in one range and not in the other, as two ranges."""
    if other[0] >= other[1]:
        return one, (0, 0)
    return (one[0], min(one[1], other[0])), (max(one[0], other[1]), one[1])
