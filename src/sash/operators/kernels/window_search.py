"""Searches in the ordered trees of window functions: positions of peers and of values, and rows by position.

Each row (slot) has `stride` nodes: node `slot * stride + k` belongs to tree k of its partition. Tree 0 has all rows; the
others have a part of them, such as those with a value in one column. All trees of an order have the same keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sash.operators.kernels.treap import compare
from sash.operators.kernels.wide_tree import CAPACITY, CHILD, COUNT, FIRST, HEAD, LEVEL, USED, WIDE, WideNodes
from sash.state.jit import kernel, uncounted
from sash.state.memory import Ints

Hashes = npt.NDArray[np.uint64]
_BEFORE_PEERS, _UP_TO_PEERS, _BELOW, _UP_TO, _BEFORE_KEY, _UP_TO_KEY = range(6)
"""Conditions on rows that hold for the first rows of the order only."""


class Keys(NamedTuple):
    """The order of rows, by slot: two hashes of the columns in ORDER BY, equal for peers; and `width` words, with the classes
    that order NULLs, of which the first is the value in ORDER BY and the others bounds of RANGE frames."""

    low: Hashes
    high: Hashes
    words: Ints
    classes: npt.NDArray[np.int8]
    width: int
    stride: int


@uncounted
def are_peers(keys: Keys, a: int, b: int) -> bool:
    """Whether two slots are equal in the order."""
    return bool(keys.low[a] == keys.low[b] and keys.high[a] == keys.high[b])


@kernel
def peers_start(tree: WideNodes, keys: Keys, root: int, slot: int) -> int:
    """The number of rows before the peers of the slot, which may or may not be in the tree."""
    return _search(tree, keys, root, _BEFORE_PEERS, slot, 0, 0)


@kernel
def peers_stop(tree: WideNodes, keys: Keys, root: int, slot: int) -> int:
    """The number of rows that are peers of the slot or before them."""
    return _search(tree, keys, root, _UP_TO_PEERS, slot, 0, 0)


@kernel
def count_below(tree: WideNodes, keys: Keys, root: int, column: int, slot: int, bound: int, inclusive: bool) -> int:
    """The number of rows whose word `column` is below the word `bound` of the slot, or if `inclusive` not above it."""
    return _search(tree, keys, root, _UP_TO if inclusive else _BELOW, slot, column, bound)


@kernel
def count_before_key(tree: WideNodes, keys: Keys, root: int, node: int, inclusive: bool) -> int:
    """The number of rows whose keys are below that of a node, or if `inclusive` not above it; a slot has one node."""
    return _search(tree, keys, root, _UP_TO_KEY if inclusive else _BEFORE_KEY, node, 0, 0)


@uncounted
def _search(tree: WideNodes, keys: Keys, root: int, condition: int, slot: int, column: int, bound: int) -> int:
    """The number of rows for which a condition holds."""
    if root == 0:
        return 0
    blocks = tree.blocks
    here, result = root, 0
    while True:
        rows = here + HEAD + FIRST * blocks[here + CAPACITY]
        start, stop = 0, blocks[here + USED]
        while start < stop:
            middle = (start + stop) >> 1
            if _holds(tree, keys, blocks[rows + middle], condition, slot, column, bound):
                start = middle + 1
            else:
                stop = middle
        if blocks[here + LEVEL] == 0:
            return result + start
        if start == 0:
            return result
        counts = here + HEAD + COUNT * WIDE
        for entry in range(start - 1):
            result += blocks[counts + entry]
        here = blocks[here + HEAD + CHILD * WIDE + start - 1]


@uncounted
def _holds(tree: WideNodes, keys: Keys, node: int, condition: int, slot: int, column: int, bound: int) -> bool:
    other = node // keys.stride
    if condition == _BEFORE_KEY:
        return compare(tree.keys, node, slot) < 0
    if condition == _UP_TO_KEY:
        return compare(tree.keys, node, slot) <= 0
    if condition == _BEFORE_PEERS:
        return compare(tree.keys, node, slot * keys.stride) < 0 and not are_peers(keys, other, slot)
    if condition == _UP_TO_PEERS:
        return compare(tree.keys, node, slot * keys.stride) <= 0 or are_peers(keys, other, slot)
    one, two = other * keys.width + column, slot * keys.width + bound
    if keys.classes[one] != keys.classes[two]:
        return bool(keys.classes[one] < keys.classes[two])
    if keys.words[one] != keys.words[two]:
        return bool(keys.words[one] < keys.words[two])
    return condition == _UP_TO
