"""The loop of aggregates by rank: rows are added to and removed from the tree of their group, and ranks are read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.operators.kernels.group_trees import apply_event
from sash.operators.kernels.touches import Events, Mask
from sash.operators.kernels.treap import Nodes, count, kth
from sash.state.jit import kernel
from sash.state.memory import Ints

Floats = npt.NDArray[np.float64]
DISCRETE, BACKWARD = 1, 2


@kernel
def rank_rows(
    events: Events, nodes: Ints, own: bool, skip: Mask, tree: Nodes, roots: Ints, places: Floats, kinds: Ints,
    lower: Ints, upper: Ints, share: Floats,
) -> Ints:  # fmt: skip
    """By place (0.0 the first, 1.0 the last) and version: the nodes around it, + 1 (0: none), and the upper's share.

    `kinds` are by place: with DISCRETE only one node is, the first at or after the place; with BACKWARD the last is at 0.0.

    With `own` a removal is any node with the key of the event's node; the nodes that are free again are returned.
    Otherwise the event's node itself leaves, if it is in the tree.
    """
    versions = len(lower) // len(places)
    free = np.empty(2 * len(nodes) if own else 0, np.int64)
    freed = 0
    for index in range(len(events.first_group)):
        root, version = roots[events.first_group[index]], events.first_version[index]
        _read(tree, root, places, kinds, versions, version, lower, upper, share)
    for event in range(len(events.order)):
        position = events.order[event]
        code = events.group[position]
        skipped = len(skip) > 0 and skip[position]
        freed = apply_event(tree, roots, code, nodes[position], events.sign[position] > 0, own, skipped, free, freed)
        if events.version[event] >= 0:
            _read(tree, roots[code], places, kinds, versions, events.version[event], lower, upper, share)
    return free[:freed].copy()


@kernel
def _read(
    tree: Nodes, root: int, places: Floats, kinds: Ints, versions: int, version: int,
    lower: Ints, upper: Ints, share: Floats,
) -> None:  # fmt: skip
    size = count(tree, root)
    for place in range(len(places)):
        to = place * versions + version
        share[to] = 0.0
        if root == 0:
            lower[to] = 0
            upper[to] = 0
            continue
        if kinds[place] & DISCRETE:
            index = max(int(np.ceil(np.float64(size) * places[place])) - 1, 0)
        else:
            exact = np.float64(size - 1) * places[place]
            index = int(np.floor(exact))
            share[to] = exact - np.float64(index)
        step = 1
        if kinds[place] & BACKWARD:
            index, step = size - 1 - index, -1
        lower[to] = kth(tree, root, index) + 1
        upper[to] = kth(tree, root, index + step) + 1 if share[to] > 0.0 else lower[to]
