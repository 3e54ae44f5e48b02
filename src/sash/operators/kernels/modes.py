"""The loop of MODE: the values of a group are a tree by how often they occur, the most frequent first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.operators.kernels.touches import Events
from sash.operators.kernels.treap import HIGH, Nodes, delete, insert, kth
from sash.state.jit import kernel
from sash.state.memory import Ints

Bytes = npt.NDArray[np.uint8]


@kernel
def leave_room(offsets: Ints, data: Bytes) -> tuple[Ints, Bytes]:
    """The byte strings, each with eight bytes before it, in which the tree's first word is the number of occurrences."""
    rows = len(offsets) - 1
    wider = np.empty(rows + 1, np.int64)
    out = np.zeros(len(data) + 8 * rows, np.uint8)
    for row in range(rows + 1):
        wider[row] = offsets[row] + 8 * row
    for row in range(rows):
        out[wider[row] + 8 : wider[row + 1]] = data[offsets[row] : offsets[row + 1]]
    return wider, out


@kernel
def count_values(events: Events, pairs: Ints, tree: Nodes, roots: Ints, occurrences: Ints, out: Ints) -> Ints:
    """By version: the node of the most frequent value, + 1 (0: none). `pairs` are nodes + 1 by position, 0 for none.

    Returns the nodes whose values no longer occur.
    """
    for index in range(len(events.first_group)):
        root = roots[events.first_group[index]]
        out[events.first_version[index]] = kth(tree, root, 0) + 1 if root != 0 else 0
    for event in range(len(events.order)):
        position = events.order[event]
        code = events.group[position]
        node = pairs[position] - 1
        if node >= 0:
            if occurrences[node] > 0:
                roots[code] = delete(tree, roots[code], node)
            occurrences[node] += events.sign[position]
            if occurrences[node] > 0:
                tree.cells[node, HIGH] = -occurrences[node]
                roots[code] = insert(tree, roots[code], node)
        if events.version[event] >= 0:
            root = roots[code]
            out[events.version[event]] = kth(tree, root, 0) + 1 if root != 0 else 0
    gone = np.empty(len(pairs), np.int64)
    count = 0
    for position in range(len(pairs)):
        node = pairs[position] - 1
        if node >= 0 and occurrences[node] == 0:
            occurrences[node] = -1
            gone[count] = node
            count += 1
    for index in range(count):
        occurrences[gone[index]] = 0
    return gone[:count].copy()
