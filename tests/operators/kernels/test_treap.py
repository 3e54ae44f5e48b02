"""The treap against a sorted list, with keys that share long prefixes, and keys that repeat."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from sash.operators.kernels.treap import Treap, compare, count, delete, find, insert, kth, rank
from sash.state.memory import HeapMemory
from sash.state.ordering import encode_order


def test_oracle_inserts_and_deletes() -> None:
    rng = random.Random(5)
    memory = HeapMemory()
    treap = Treap(memory)
    keys: dict[int, str] = {}
    free = list(range(400))
    root = 0
    for turn in range(60):
        nodes = [free.pop(rng.randrange(len(free))) for _ in range(min(len(free), 12))]
        texts = [rng.choice(["", "same", "a prefix of many bytes "]) + str(rng.randrange(20)) for _ in nodes]
        treap.write(np.array(nodes, np.int64), *encode_order([pa.array(texts)], [False], [True], len(nodes)))
        tree = treap.nodes
        for node, text in zip(nodes, texts, strict=True):
            root = insert(tree, root, node)
            keys[node] = text
        gone = rng.sample(sorted(keys), len(keys) if turn % 20 == 19 else rng.randrange(14) % (len(keys) + 1))
        for node in gone:
            root = delete(tree, root, node)
            del keys[node]
        treap.free(np.array(gone, np.int64))
        free += gone
        treap = Treap(memory)
        tree = treap.nodes
        expected = sorted(keys, key=lambda node: (keys[node].encode(), node))
        assert count(tree, root) == len(expected)
        assert [kth(tree, root, k) for k in range(len(expected))] == expected
        assert [rank(tree, root, node) for node in expected] == list(range(len(expected)))
    assert root == 0
    assert memory.nbytes < 100_000


def test_find_goes_by_key_alone() -> None:
    treap = Treap(HeapMemory())
    treap.write_words(np.arange(4), np.array([7, 3, 7, 5]))
    tree = treap.nodes
    root = insert(tree, insert(tree, 0, 0), 1)
    assert find(tree, root, 2) == 0
    assert find(tree, root, 3) == -1
    assert compare(tree, 1, 0) == -1
    assert compare(tree, 2, 0) == 0
    assert treap.words(np.array([1, 2])).tolist() == [3, 7]
