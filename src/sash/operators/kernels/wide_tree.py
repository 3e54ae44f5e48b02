"""A search tree with counts and wide nodes, in flat arrays: one entry per row, one root per group.

A B+ tree whose entries hold the first sixteen bytes of their keys. A search reads a few consecutive words of one block per
level, so that the cost of a change hardly grows with the rows, while a binary tree misses the cache at every level. Keys are
those of a `Treap`, whose nodes are the rows. An entry of an inner block has the key and number of the first row below it, so
any condition on rows that is monotone in the order can be searched for. Rows may have a value: inner entries then hold the
smallest one below them.

A tree of few rows is one small block, whose capacity grows and shrinks by a factor of four.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sash.operators.kernels.treap import HIGH, LENGTH, LOW, SIZE, Nodes, Treap, compare
from sash.operators.kernels.treap import RIGHT as VALUE
from sash.state.jit import kernel, prefetch, uncounted
from sash.state.memory import Ints, Memory

LEVEL, USED, ROWS, CAPACITY, HEAD = range(5)
"""The header of a block: its level (0 is a leaf), its entries, the rows below it, and the entries it has room for."""

HIGHS, LOWS, FIRST, LEAST, CHILD, COUNT = range(6)
"""The columns of a block: the key, the row, its value; in inner blocks the smallest value, the block below and its rows."""

WIDE, SMALL = 32, 2
_LEAF_COLUMNS, _INNER_COLUMNS = 4, 6
_UNDERFULL, _MERGED = WIDE // 4, 3 * WIDE // 4
_LEAF, _INNER = HEAD + _LEAF_COLUMNS * WIDE, HEAD + _INNER_COLUMNS * WIDE
_NEXT, _FREE, _AMPLE, _VALUED, _PATH = 0, 1, 5, 6, 8
_LEVELS = 16
_STATE = _PATH + 2 * _LEVELS
_PER_INSERT = _LEAF + 7 * _INNER
"""More words than one insertion takes: with seven inner levels a tree has at least 8^8 rows."""

_PER_ROW = 2 * _LEAF // (WIDE // 8)
"""More words than a row takes: of a leaf's entries more than an eighth is in use, but for the last leaf of a tree."""


class WideNodes(NamedTuple):
    """The arrays of a wide tree as kernels take them."""

    keys: Nodes
    blocks: Ints
    state: Ints


class WideTree:
    """The blocks of many trees. The caller numbers the rows and keeps the roots; a root is the position of a block."""

    def __init__(self, memory: Memory, keys: Treap) -> None:
        self._memory = memory
        self._keys = keys
        self._blocks: Ints = memory.array("blocks", np.int64, 1024)
        self._state: Ints = memory.array("state", np.int64, _STATE)

    def keep_values(self) -> None:
        """Keep values and the smallest of each block, from the first row on."""
        self._state[_VALUED] = 1

    def write_values(self, nodes: Ints, values: Ints) -> None:
        """Write the values of rows that are in no tree."""
        self._keys.nodes.cells[nodes, VALUE] = values

    @property
    def nodes(self) -> WideNodes:
        """The current arrays; they are invalid after keys are written or space is reserved."""
        return WideNodes(self._keys.nodes, self._blocks, self._state)

    def reserve(self, inserts: int, rows: int, groups: int) -> None:
        """Make room for a number of insertions; afterwards all trees have at most so many rows, in so many groups."""
        if not self._state[_NEXT]:
            self._state[_NEXT] = 1
        most = 1 + 2 * _INNER + _PER_ROW * rows + (HEAD + _LEAF_COLUMNS * SMALL + 2 * _LEAF) * groups
        needed = min(int(self._state[_NEXT]) + inserts * _PER_INSERT, most)
        if needed > len(self._blocks):
            self._blocks = self._memory.grow("blocks", np.int64, min(max(needed, 2 * len(self._blocks)), most))
        self._state[_AMPLE] = len(self._blocks) >= most

    def adopt(self, roots: Ints) -> None:
        """Make wide trees of treaps, whose roots are replaced, where this tree is new and treaps have rows."""
        if self._state[_NEXT] or not roots.any():
            return
        for group in np.flatnonzero(roots).tolist():
            rows = _in_order(self._keys.nodes, int(roots[group]))
            self._keys.nodes.cells[rows, VALUE] = 0
            roots[group] = 0
            self.reserve(len(rows), 1 << 40, len(roots))
            roots[group] = _insert_all(self.nodes, rows)


@uncounted
def has_room(tree: WideNodes, inserts: int) -> bool:
    """Whether there is space for so many insertions."""
    return bool(tree.state[_AMPLE]) or tree.state[_NEXT] + inserts * _PER_INSERT <= len(tree.blocks)


@uncounted
def count(tree: WideNodes, root: int) -> int:
    """The number of rows of the tree."""
    return tree.blocks[root + ROWS] if root != 0 else 0


@uncounted
def insert(tree: WideNodes, root: int, node: int) -> int:
    """Insert `node`, which is in no tree; returns the root."""
    blocks, state = tree.blocks, tree.state
    tree.keys.cells[node, SIZE] = 1
    if root == 0:
        root = _new(tree, 0, SMALL)
        _write_row(tree, root, 0, node)
        blocks[root + USED] = 1
        blocks[root + ROWS] = 1
        return root
    value = tree.keys.cells[node, VALUE] if state[_VALUED] else 0
    here, depth, last = root, 0, True
    while blocks[here + LEVEL] > 0:
        index = max(position(tree, here, node, False) - 1, 0)
        at = here + HEAD + index
        blocks[here + ROWS] += 1
        blocks[at + COUNT * WIDE] += 1
        blocks[at + LEAST * WIDE] = min(blocks[at + LEAST * WIDE], value)
        last = last and index == blocks[here + USED] - 1
        state[_PATH + 2 * depth] = here
        state[_PATH + 2 * depth + 1] = index
        depth += 1
        here = blocks[at + CHILD * WIDE]
    place = position(tree, here, node, False)
    used, capacity = blocks[here + USED], blocks[here + CAPACITY]
    if used < capacity:
        _open(blocks, here, place)
        _write_row(tree, here, place, node)
        blocks[here + ROWS] += 1
        if place == 0:
            _rename_path(tree, depth, here)
        return root
    if capacity < WIDE:
        here = _resized(tree, here, 4 * capacity)
        _open(blocks, here, place)
        _write_row(tree, here, place, node)
        blocks[here + ROWS] += 1
        return here
    # Rows that come in order leave full blocks behind.
    kept = WIDE if last and place == WIDE else WIDE // 2
    right = _split(tree, here, kept)
    side, to = (here, place) if place <= kept < WIDE else (right, place - kept)
    _open(blocks, side, to)
    _write_row(tree, side, to, node)
    blocks[side + ROWS] += 1
    if place == 0:
        _rename_path(tree, depth, here)
    left = here
    while depth > 0:
        depth -= 1
        parent, index = state[_PATH + 2 * depth], state[_PATH + 2 * depth + 1]
        _describe(tree, parent, index, left)
        if blocks[parent + USED] < WIDE:
            _open(blocks, parent, index + 1)
            _describe(tree, parent, index + 1, right)
            return root
        kept = WIDE if last and index + 1 == WIDE else WIDE // 2
        upper = _split(tree, parent, kept)
        side, to = (parent, index + 1) if index + 1 <= kept < WIDE else (upper, index + 1 - kept)
        _open(blocks, side, to)
        _describe(tree, side, to, right)
        _count_rows(blocks, parent)
        _count_rows(blocks, upper)
        left, right = parent, upper
    root = _new(tree, blocks[left + LEVEL] + 1, WIDE)
    blocks[root + USED] = 2
    _describe(tree, root, 0, left)
    _describe(tree, root, 1, right)
    _count_rows(blocks, root)
    return root


@uncounted
def delete(tree: WideNodes, root: int, node: int) -> int:
    """Remove `node`, which is in the tree; returns the root."""
    blocks, state = tree.blocks, tree.state
    tree.keys.cells[node, SIZE] = 0
    here, depth = root, 0
    while blocks[here + LEVEL] > 0:
        index = position(tree, here, node, False) - 1
        blocks[here + ROWS] -= 1
        blocks[here + HEAD + COUNT * WIDE + index] -= 1
        state[_PATH + 2 * depth] = here
        state[_PATH + 2 * depth + 1] = index
        depth += 1
        here = blocks[here + HEAD + CHILD * WIDE + index]
    place = position(tree, here, node, False) - 1
    capacity = blocks[here + CAPACITY]
    if place < 0 or blocks[here + HEAD + FIRST * capacity + place] != node:
        raise ValueError("a row that ends is not in its tree")
    value = blocks[here + HEAD + LEAST * capacity + place]
    _close(blocks, here, place)
    blocks[here + ROWS] -= 1
    child = here
    while depth > 0:
        depth -= 1
        parent, index = state[_PATH + 2 * depth], state[_PATH + 2 * depth + 1]
        at = parent + HEAD + index
        if blocks[child + USED] == 0:
            _release(tree, child)
            _close(blocks, parent, index)
        elif blocks[child + USED] < _UNDERFULL and blocks[parent + USED] > 1:
            _rebalance(tree, parent, index if index + 1 < blocks[parent + USED] else index - 1)
        else:
            _copy_first(blocks, child, at)
            if state[_VALUED] and blocks[at + LEAST * WIDE] == value:
                blocks[at + LEAST * WIDE] = _least(blocks, child)
        child = parent
    while blocks[root + LEVEL] > 0 and blocks[root + USED] <= 1:
        below = blocks[root + HEAD + CHILD * WIDE] if blocks[root + USED] == 1 else 0
        _release(tree, root)
        if below == 0:
            return 0
        root = below
    if blocks[root + LEVEL] == 0:
        if blocks[root + USED] == 0:
            _release(tree, root)
            return 0
        if blocks[root + CAPACITY] > SMALL and blocks[root + USED] <= blocks[root + CAPACITY] // 8:
            return _resized(tree, root, blocks[root + CAPACITY] // 4)
    return root


@uncounted
def position(tree: WideNodes, block: int, node: int, strictly: bool) -> int:
    """The number of entries of a block that are not after `node`, or if `strictly` that are before it."""
    blocks, cells = tree.blocks, tree.keys.cells
    highs = block + HEAD
    for line in range(highs, highs + blocks[block + USED], 8):
        prefetch(blocks, line)
    high, low = cells[node, HIGH], cells[node, LOW]
    capacity = blocks[block + CAPACITY]
    start, stop = 0, blocks[block + USED]
    while start < stop:
        middle = (start + stop) >> 1
        word = blocks[highs + middle]
        if word != high:
            before = word < high
        else:
            word = blocks[highs + LOWS * capacity + middle]
            if word != low:
                before = word < low
            else:
                before = _ties(tree, blocks[highs + FIRST * capacity + middle], node, strictly)
        if before:
            start = middle + 1
        else:
            stop = middle
    return start


@uncounted
def _ties(tree: WideNodes, other: int, node: int, strictly: bool) -> bool:
    """Whether a row whose key begins as that of `node` is not after it."""
    if other == node:
        return not strictly
    if tree.keys.cells[other, LENGTH] or tree.keys.cells[node, LENGTH]:
        order = compare(tree.keys, other, node)
        if order != 0:
            return order < 0
    return other < node


@uncounted
def rank(tree: WideNodes, root: int, node: int) -> int:
    """The number of rows of the tree that sort before `node`, which may or may not be in it."""
    if root == 0:
        return 0
    blocks = tree.blocks
    here, result = root, 0
    while blocks[here + LEVEL] > 0:
        index = position(tree, here, node, True) - 1
        if index < 0:
            return result
        counts = here + HEAD + COUNT * WIDE
        for entry in range(index):
            result += blocks[counts + entry]
        here = blocks[here + HEAD + CHILD * WIDE + index]
    return result + position(tree, here, node, True)


@uncounted
def kth(tree: WideNodes, root: int, k: int) -> int:
    """The row with k rows before it (0 <= k < count)."""
    block, index = leaf_of(tree, root, k)
    row: int = tree.blocks[block + HEAD + FIRST * tree.blocks[block + CAPACITY] + index]
    return row


@uncounted
def leaf_of(tree: WideNodes, root: int, k: int) -> tuple[int, int]:
    """The leaf with the row that has k rows before it, and the row's index there."""
    blocks = tree.blocks
    here = root
    while blocks[here + LEVEL] > 0:
        counts = here + HEAD + COUNT * WIDE
        index = 0
        while k >= blocks[counts + index]:
            k -= blocks[counts + index]
            index += 1
        here = blocks[here + HEAD + CHILD * WIDE + index]
    return here, k


@uncounted
def collect(tree: WideNodes, root: int, first: int, size: int, stride: int, out: Ints) -> None:
    """The rows, divided by `stride`, at `size` consecutive positions from `first` on."""
    blocks = tree.blocks
    done = 0
    while done < size:
        block, index = leaf_of(tree, root, first + done)
        rows = block + HEAD + FIRST * blocks[block + CAPACITY]
        for entry in range(index, min(blocks[block + USED], index + size - done)):
            out[done] = blocks[rows + entry] // stride
            done += 1


@uncounted
def _new(tree: WideNodes, level: int, capacity: int) -> int:
    """An empty block."""
    blocks, state = tree.blocks, tree.state
    kind = _kind(level, capacity)
    block = state[_FREE + kind]
    if block != 0:
        state[_FREE + kind] = blocks[block]
    else:
        block = state[_NEXT]
        state[_NEXT] += HEAD + (_INNER_COLUMNS if level > 0 else _LEAF_COLUMNS) * capacity
        if state[_NEXT] > len(blocks):
            raise ValueError("no room for a block")
    blocks[block + LEVEL] = level
    blocks[block + USED] = 0
    blocks[block + ROWS] = 0
    blocks[block + CAPACITY] = capacity
    return int(block)


@uncounted
def _kind(level: int, capacity: int) -> int:
    if level > 0:
        return 3
    return 0 if capacity == SMALL else 1 if capacity < WIDE else 2


@uncounted
def _release(tree: WideNodes, block: int) -> None:
    kind = _kind(tree.blocks[block + LEVEL], tree.blocks[block + CAPACITY])
    tree.blocks[block] = tree.state[_FREE + kind]
    tree.state[_FREE + kind] = block


@uncounted
def _resized(tree: WideNodes, block: int, capacity: int) -> int:
    """A leaf of another capacity with the same entries, instead of this one."""
    blocks = tree.blocks
    made = _new(tree, 0, capacity)
    used, old = blocks[block + USED], blocks[block + CAPACITY]
    for column in range(_LEAF_COLUMNS):
        for entry in range(used):
            blocks[made + HEAD + column * capacity + entry] = blocks[block + HEAD + column * old + entry]
    blocks[made + USED] = used
    blocks[made + ROWS] = used
    _release(tree, block)
    return made


@uncounted
def _columns(blocks: Ints, block: int) -> int:
    return _INNER_COLUMNS if blocks[block + LEVEL] > 0 else _LEAF_COLUMNS


@uncounted
def _open(blocks: Ints, block: int, index: int) -> None:
    """Make room for an entry at this index."""
    used, capacity = blocks[block + USED], blocks[block + CAPACITY]
    for column in range(_columns(blocks, block)):
        at = block + HEAD + column * capacity
        for entry in range(at + used, at + index, -1):
            blocks[entry] = blocks[entry - 1]
    blocks[block + USED] = used + 1


@uncounted
def _close(blocks: Ints, block: int, index: int) -> None:
    """Remove the entry at this index."""
    used, capacity = blocks[block + USED], blocks[block + CAPACITY]
    for column in range(_columns(blocks, block)):
        at = block + HEAD + column * capacity
        for entry in range(at + index, at + used - 1):
            blocks[entry] = blocks[entry + 1]
    blocks[block + USED] = used - 1


@uncounted
def _write_row(tree: WideNodes, block: int, index: int, node: int) -> None:
    blocks, cells = tree.blocks, tree.keys.cells
    capacity = blocks[block + CAPACITY]
    at = block + HEAD + index
    blocks[at + HIGHS * capacity] = cells[node, HIGH]
    blocks[at + LOWS * capacity] = cells[node, LOW]
    blocks[at + FIRST * capacity] = node
    blocks[at + LEAST * capacity] = cells[node, VALUE] if tree.state[_VALUED] else 0


@uncounted
def _split(tree: WideNodes, block: int, kept: int) -> int:
    """A new block with the entries of a full one from `kept` on."""
    blocks = tree.blocks
    right = _new(tree, blocks[block + LEVEL], WIDE)
    _move(blocks, block, kept, right, 0, WIDE - kept)
    blocks[block + USED] = kept
    blocks[right + USED] = WIDE - kept
    if blocks[block + LEVEL] == 0:
        blocks[block + ROWS] = kept
        blocks[right + ROWS] = WIDE - kept
    return right


@uncounted
def _move(blocks: Ints, source: int, first: int, target: int, to: int, entries: int) -> None:
    """Copy entries between blocks of the same level, both of full capacity."""
    for column in range(_columns(blocks, source)):
        one, other = source + HEAD + column * WIDE + first, target + HEAD + column * WIDE + to
        for entry in range(entries):
            blocks[other + entry] = blocks[one + entry]


@uncounted
def _rebalance(tree: WideNodes, parent: int, index: int) -> None:
    """Merge the blocks at `index` and the next one, or if they have too many entries for one, share these equally."""
    blocks = tree.blocks
    children = parent + HEAD + CHILD * WIDE
    left, right = blocks[children + index], blocks[children + index + 1]
    less, more = blocks[left + USED], blocks[right + USED]
    if less + more <= _MERGED:
        _move(blocks, right, 0, left, less, more)
        blocks[left + USED] = less + more
        _count_rows(blocks, left)
        _release(tree, right)
        _close(blocks, parent, index + 1)
        _describe(tree, parent, index, left)
        return
    half = (less + more) // 2
    if less < half:
        moved = half - less
        _move(blocks, right, 0, left, less, moved)
        _move(blocks, right, moved, right, 0, more - moved)
    else:
        moved = less - half
        for column in range(_columns(blocks, right)):
            at = right + HEAD + column * WIDE
            for entry in range(more - 1, -1, -1):
                blocks[at + entry + moved] = blocks[at + entry]
        _move(blocks, left, half, right, 0, moved)
    blocks[left + USED] = half
    blocks[right + USED] = less + more - half
    _count_rows(blocks, left)
    _count_rows(blocks, right)
    _describe(tree, parent, index, left)
    _describe(tree, parent, index + 1, right)


@uncounted
def _count_rows(blocks: Ints, block: int) -> None:
    used = blocks[block + USED]
    if blocks[block + LEVEL] == 0:
        blocks[block + ROWS] = used
        return
    rows = 0
    for entry in range(used):
        rows += blocks[block + HEAD + COUNT * WIDE + entry]
    blocks[block + ROWS] = rows


@uncounted
def _least(blocks: Ints, block: int) -> int:
    """The smallest value below a block, which has entries."""
    at = block + HEAD + LEAST * blocks[block + CAPACITY]
    least = blocks[at]
    for entry in range(1, blocks[block + USED]):
        least = min(least, blocks[at + entry])
    return int(least)


@uncounted
def _describe(tree: WideNodes, parent: int, index: int, child: int) -> None:
    """Write the entry of a block in the one above it."""
    blocks = tree.blocks
    at = parent + HEAD + index
    _copy_first(blocks, child, at)
    blocks[at + LEAST * WIDE] = _least(blocks, child) if tree.state[_VALUED] else 0
    blocks[at + CHILD * WIDE] = child
    blocks[at + COUNT * WIDE] = blocks[child + ROWS]


@uncounted
def _copy_first(blocks: Ints, child: int, at: int) -> None:
    """Copy key and row of a block's first entry to an entry above it."""
    for column in range(LEAST):
        blocks[at + column * WIDE] = blocks[child + HEAD + column * blocks[child + CAPACITY]]


@uncounted
def _rename_path(tree: WideNodes, depth: int, leaf: int) -> None:
    """Write the first row of a leaf into the entries above it that begin with it."""
    state = tree.state
    child = leaf
    while depth > 0:
        depth -= 1
        parent, index = state[_PATH + 2 * depth], state[_PATH + 2 * depth + 1]
        _copy_first(tree.blocks, child, parent + HEAD + index)
        if index > 0:
            return
        child = parent


@kernel
def _in_order(tree: Nodes, root: int) -> Ints:
    """The nodes of a treap in order."""
    size = tree.cells[root - 1, SIZE]
    out = np.empty(size, np.int64)
    stack = np.empty(size, np.int64)
    top = made = 0
    here = root
    while here != 0 or top > 0:
        while here != 0:
            stack[top] = here
            top += 1
            here = tree.cells[here - 1, 0]
        top -= 1
        out[made] = stack[top] - 1
        made += 1
        here = tree.cells[stack[top] - 1, 1]
    return out


@kernel
def _insert_all(tree: WideNodes, rows: Ints) -> int:
    root = 0
    for row in rows:
        root = insert(tree, root, row)
    return root
