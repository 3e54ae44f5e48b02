"""A balanced search tree with subtree sizes, in flat arrays: one node per row, one root per group.

A treap (Seidel and Aragon, Algorithmica 1996): in order by key, a heap by priority. A node's priority is a hash of its
number, so it is not stored, and the tree's shape does not affect results. Roots and links are node number + 1; 0 means
none. A key is a byte string: its first sixteen bytes are two words, the rest is in a heap of bytes that is compacted when
more than half of it is dead. Nodes with equal keys are ordered by their numbers. A node fits in one cache line, since
memory access dominates the cost of a walk down the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sash.state.hashing import mix
from sash.state.jit import kernel
from sash.state.memory import Ints, Memory

Bytes = npt.NDArray[np.uint8]
LEFT, RIGHT, SIZE, HIGH, LOW, START, LENGTH, _STRIDE = 0, 1, 2, 3, 4, 5, 6, 8
_USED, _DEAD = 0, 1


class Nodes(NamedTuple):
    """The arrays of a treap as kernels take them: `cells` has a row of LEFT, RIGHT ... per node."""

    cells: Ints
    heap: Bytes


class Treap:
    """The nodes of many trees. The caller numbers the nodes and keeps the roots."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._cells: Ints = memory.array("cells", np.int64, 256 * _STRIDE)
        self._heap: Bytes = memory.array("heap", np.uint8, 1024)
        self._marks = memory.array("heap.marks", np.int64, 2)

    @property
    def nodes(self) -> Nodes:
        """The current arrays; they are invalid after keys are written."""
        return Nodes(self._cells.reshape(-1, _STRIDE), self._heap)

    def write(self, nodes: Ints, offsets: Ints, data: Bytes) -> None:
        """Write the keys of nodes that are in no tree, as byte strings of `encode_order`."""
        if not len(nodes):
            return
        self._reserve(nodes)
        self._make_room(int(np.maximum(np.diff(offsets) - 16, 0).sum()))
        self._marks[_USED] = _write(nodes, offsets, data, int(self._marks[_USED]), self.nodes)

    def write_words(self, nodes: Ints, high: Ints, low: Ints | None = None) -> None:
        """Write integers, or pairs of them, as the keys of nodes that are in no tree."""
        if len(nodes):
            self._reserve(nodes)
            _write_words(nodes, high, high if low is None else low, low is not None, self.nodes)

    def words(self, nodes: Ints) -> Ints:
        """The first integers that `write_words` wrote for these nodes."""
        words: Ints = self.nodes.cells[nodes, HIGH]
        return words

    def free(self, nodes: Ints) -> None:
        """Free the keys of these nodes, which are in no tree (each once)."""
        if len(nodes):
            cells = self.nodes.cells
            self._marks[_DEAD] += cells[nodes, LENGTH].sum()
            cells[nodes, LENGTH] = 0

    def _reserve(self, nodes: Ints) -> None:
        needed = (int(nodes.max()) + 1) * _STRIDE
        if needed > len(self._cells):
            self._cells = self._memory.grow("cells", np.int64, max(needed, 2 * len(self._cells)))

    def _make_room(self, needed: int) -> None:
        used = int(self._marks[_USED])
        if used + needed <= len(self._heap):
            return
        if 2 * self._marks[_DEAD] > used:
            cells = self.nodes.cells
            live = np.flatnonzero(cells[:, LENGTH])
            used = _compact(live[np.argsort(cells[live, START], kind="stable")], self.nodes)
            self._marks[_USED], self._marks[_DEAD] = used, 0
        if used + needed > len(self._heap):
            self._heap = self._memory.grow("heap", np.uint8, 2 * (used + needed))


@kernel
def compare(tree: Nodes, a: int, b: int) -> int:
    """-1, 0 or 1 as the key of node a is below, equal to or above that of node b."""
    one, two = tree.cells[a], tree.cells[b]
    if one[HIGH] != two[HIGH]:
        return -1 if one[HIGH] < two[HIGH] else 1
    if one[LOW] != two[LOW]:
        return -1 if one[LOW] < two[LOW] else 1
    for index in range(min(one[LENGTH], two[LENGTH])):
        x, y = tree.heap[one[START] + index], tree.heap[two[START] + index]
        if x != y:
            return -1 if x < y else 1
    if one[LENGTH] != two[LENGTH]:
        return -1 if one[LENGTH] < two[LENGTH] else 1
    return 0


@kernel
def _before(tree: Nodes, a: int, b: int) -> bool:
    order = compare(tree, a, b)
    return order < 0 or (order == 0 and a < b)


@kernel
def _priority(node: int) -> np.uint64:
    return mix(np.uint64(node) + np.uint64(0x9E3779B97F4A7C15))


@kernel
def insert(tree: Nodes, root: int, node: int) -> int:
    """Insert `node`, which is in no tree; returns the root."""
    priority = _priority(node)
    parent, leftward = 0, False
    here = root
    while here != 0 and _priority(here - 1) > priority:
        tree.cells[here - 1, SIZE] += 1
        parent, leftward = here, _before(tree, node, here - 1)
        here = tree.cells[here - 1, LEFT if leftward else RIGHT]
    below = count(tree, here)
    less = rank(tree, here, node)
    more = below - less
    tree.cells[node, LEFT] = 0
    tree.cells[node, RIGHT] = 0
    tree.cells[node, SIZE] = below + 1
    # The subtree splits into the nodes before (down the right spine) and after (down the left spine) the new one.
    low_end, high_end = -1, -1
    while here != 0:
        other = here - 1
        if _before(tree, other, node):
            if low_end < 0:
                tree.cells[node, LEFT] = here
            else:
                tree.cells[low_end, RIGHT] = here
            low_end = other
            tree.cells[other, SIZE] = less
            less -= 1 + count(tree, tree.cells[other, LEFT])
            here = tree.cells[other, RIGHT]
        else:
            if high_end < 0:
                tree.cells[node, RIGHT] = here
            else:
                tree.cells[high_end, LEFT] = here
            high_end = other
            tree.cells[other, SIZE] = more
            more -= 1 + count(tree, tree.cells[other, RIGHT])
            here = tree.cells[other, LEFT]
    if low_end >= 0:
        tree.cells[low_end, RIGHT] = 0
    if high_end >= 0:
        tree.cells[high_end, LEFT] = 0
    if parent == 0:
        return node + 1
    tree.cells[parent - 1, LEFT if leftward else RIGHT] = node + 1
    return root


@kernel
def delete(tree: Nodes, root: int, node: int) -> int:
    """Remove `node`, which is in the tree; returns the root. The size of `node` is then 0."""
    parent, leftward = 0, False
    here = root
    while here - 1 != node:
        tree.cells[here - 1, SIZE] -= 1
        parent, leftward = here, _before(tree, node, here - 1)
        here = tree.cells[here - 1, LEFT if leftward else RIGHT]
    low, high = tree.cells[node, LEFT], tree.cells[node, RIGHT]
    tree.cells[node, SIZE] = 0
    result = root
    while True:
        if low == 0 or high == 0:
            top = low + high
        elif _priority(low - 1) > _priority(high - 1):
            top = low
        else:
            top = high
        if parent == 0:
            result = top
        else:
            tree.cells[parent - 1, LEFT if leftward else RIGHT] = top
        if low == 0 or high == 0:
            return result
        if top == low:
            tree.cells[low - 1, SIZE] += tree.cells[high - 1, SIZE]
            parent, leftward, low = low, False, tree.cells[low - 1, RIGHT]
        else:
            tree.cells[high - 1, SIZE] += tree.cells[low - 1, SIZE]
            parent, leftward, high = high, True, tree.cells[high - 1, LEFT]


@kernel
def find(tree: Nodes, root: int, probe: int) -> int:
    """A node of the tree whose key equals that of `probe`, -1 if there is none."""
    here = root
    while here != 0:
        order = compare(tree, probe, here - 1)
        if order == 0:
            return here - 1
        here = tree.cells[here - 1, LEFT if order < 0 else RIGHT]
    return -1


@kernel
def kth(tree: Nodes, root: int, k: int) -> int:
    """The node with k nodes before it (0 <= k < count)."""
    here = root
    while True:
        below = tree.cells[here - 1, LEFT]
        fewer = count(tree, below)
        if k == fewer:
            return here - 1
        if k < fewer:
            here = below
        else:
            k -= fewer + 1
            here = tree.cells[here - 1, RIGHT]


@kernel
def rank(tree: Nodes, root: int, node: int) -> int:
    """The number of nodes of the tree that sort before `node`, which may or may not be in it."""
    here = root
    result = 0
    while here != 0:
        if _before(tree, here - 1, node):
            result += 1 + count(tree, tree.cells[here - 1, LEFT])
            here = tree.cells[here - 1, RIGHT]
        else:
            here = tree.cells[here - 1, LEFT]
    return result


@kernel
def count(tree: Nodes, root: int) -> int:
    """The number of nodes of the tree."""
    return tree.cells[root - 1, SIZE] if root != 0 else 0


@kernel
def _write(nodes: Ints, offsets: Ints, data: Bytes, used: int, tree: Nodes) -> int:
    for row in range(len(nodes)):
        node = nodes[row]
        start, stop = offsets[row], offsets[row + 1]
        for half in range(2):
            word = np.uint64(0)
            for index in range(start + 8 * half, start + 8 * half + 8):
                word = (word << np.uint64(8)) | np.uint64(data[index] if index < stop else 0)
            tree.cells[node, HIGH if half == 0 else LOW] = np.int64(word ^ np.uint64(1 << 63))
        tree.cells[node, SIZE] = 0
        tree.cells[node, START] = used
        tree.cells[node, LENGTH] = max(stop - start - 16, 0)
        for index in range(start + 16, stop):
            tree.heap[used] = data[index]
            used += 1
    return used


@kernel
def _write_words(nodes: Ints, high: Ints, low: Ints, both: bool, tree: Nodes) -> None:
    for row in range(len(nodes)):
        node = nodes[row]
        tree.cells[node, SIZE] = 0
        tree.cells[node, HIGH] = high[row]
        tree.cells[node, LOW] = low[row] if both else 0


@kernel
def _compact(order: Ints, tree: Nodes) -> int:
    used = 0
    for node in order:
        start, length = tree.cells[node, START], tree.cells[node, LENGTH]
        for index in range(length):
            tree.heap[used + index] = tree.heap[start + index]
        tree.cells[node, START] = used
        used += length
    return used
