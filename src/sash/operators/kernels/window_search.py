"""Searches in the ordered trees of window functions: positions of peers and of values, and rows by position.

Each row (slot) has `stride` nodes: node `slot * stride + k` belongs to tree k of its partition. Tree 0 has all rows; the
others have a part of them, such as those with a value in one column. All trees of an order have the same keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sash.operators.kernels.treap import LEFT, RIGHT, Nodes, compare, count
from sash.state.jit import kernel
from sash.state.memory import Ints

Hashes = npt.NDArray[np.uint64]
_DEEPEST = 1024
"""More levels than any tree has: the depth is about 2 ln n, and its distribution falls off quickly."""


class Keys(NamedTuple):
    """The order of rows, by slot: two hashes of the columns in ORDER BY, equal for peers; and `width` words, with the classes
    that order NULLs, of which the first is the value in ORDER BY and the others bounds of RANGE frames."""

    low: Hashes
    high: Hashes
    words: Ints
    classes: npt.NDArray[np.int8]
    width: int
    stride: int


@kernel
def are_peers(keys: Keys, a: int, b: int) -> bool:
    """Whether two slots are equal in the order."""
    return bool(keys.low[a] == keys.low[b] and keys.high[a] == keys.high[b])


@kernel
def peers_start(tree: Nodes, keys: Keys, root: int, slot: int) -> int:
    """The number of rows before the peers of the slot, which may or may not be in the tree."""
    here = root
    result = 0
    while here != 0:
        node = here - 1
        if not are_peers(keys, node // keys.stride, slot) and compare(tree, node, slot * keys.stride) < 0:
            result += 1 + count(tree, tree.cells[node, LEFT])
            here = tree.cells[node, RIGHT]
        else:
            here = tree.cells[node, LEFT]
    return result


@kernel
def peers_stop(tree: Nodes, keys: Keys, root: int, slot: int) -> int:
    """The number of rows that are peers of the slot or before them."""
    here = root
    result = 0
    while here != 0:
        node = here - 1
        if are_peers(keys, node // keys.stride, slot) or compare(tree, node, slot * keys.stride) < 0:
            result += 1 + count(tree, tree.cells[node, LEFT])
            here = tree.cells[node, RIGHT]
        else:
            here = tree.cells[node, LEFT]
    return result


@kernel
def count_below(tree: Nodes, keys: Keys, root: int, column: int, slot: int, bound: int, inclusive: bool) -> int:
    """The number of rows whose word `column` is below the word `bound` of the slot, or if `inclusive` not above it."""
    word, order = keys.words[slot * keys.width + bound], keys.classes[slot * keys.width + bound]
    here = root
    result = 0
    while here != 0:
        node = here - 1
        at = (node // keys.stride) * keys.width + column
        if keys.classes[at] != order:
            below = keys.classes[at] < order
        elif keys.words[at] != word:
            below = keys.words[at] < word
        else:
            below = inclusive
        if below:
            result += 1 + count(tree, tree.cells[node, LEFT])
            here = tree.cells[node, RIGHT]
        else:
            here = tree.cells[node, LEFT]
    return result


@kernel
def collect(tree: Nodes, root: int, first: int, size: int, stride: int, out: Ints) -> None:
    """The slots of `size` rows in order, from position `first` on."""
    stack = np.empty(_DEEPEST, np.int64)
    top = 0
    here = root
    while True:
        node = here - 1
        fewer = count(tree, tree.cells[node, LEFT])
        if first <= fewer:
            stack[top] = here
            top += 1
            if first == fewer:
                break
            here = tree.cells[node, LEFT]
        else:
            first -= fewer + 1
            here = tree.cells[node, RIGHT]
    for index in range(size):
        top -= 1
        node = stack[top] - 1
        out[index] = node // stride
        here = tree.cells[node, RIGHT]
        while here != 0:
            stack[top] = here
            top += 1
            here = tree.cells[here - 1, LEFT]
