"""Searches for peers and values in trees of several levels, against a sorted list."""

from __future__ import annotations

import random

import numpy as np

from sash.operators.kernels.treap import Treap
from sash.operators.kernels.wide_tree import WideTree, insert
from sash.operators.kernels.window_search import Keys, count_below, peers_start, peers_stop
from sash.state.memory import HeapMemory


def test_oracle_positions_of_peers_and_values() -> None:
    rng = random.Random(7)
    values = [rng.randrange(300) for _ in range(3_000)]
    treap = Treap(HeapMemory())
    tree = WideTree(HeapMemory(), treap)
    treap.write_words(np.arange(3_000), np.array(values), np.arange(3_000))
    tree.reserve(1 << 20, 3_000, 1)
    root = 0
    absent = set(rng.sample(range(3_000), 200))
    for node in range(3_000):
        if node not in absent:
            root = insert(tree.nodes, root, node)
    hashes = np.array(values, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    words = np.column_stack((values, np.array(values) + 7)).ravel()
    keys = Keys(hashes, hashes.copy(), words, np.ones(6_000, np.int8), 2, 1)
    inside = sorted(value for node, value in enumerate(values) if node not in absent)
    for slot in [*rng.sample(range(3_000), 150), *sorted(absent)[:20]]:
        value = values[slot]
        below, up_to = sum(other < value for other in inside), sum(other <= value for other in inside)
        assert peers_start(tree.nodes, keys, root, slot) == below
        assert peers_stop(tree.nodes, keys, root, slot) == up_to
        assert count_below(tree.nodes, keys, root, 0, slot, 1, False) == sum(other < value + 7 for other in inside)
        assert count_below(tree.nodes, keys, root, 1, slot, 0, True) == sum(other + 7 <= value for other in inside)
