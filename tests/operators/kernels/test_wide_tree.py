"""The wide tree against a sorted list: keys that share long prefixes, keys that repeat, values, and treaps that it adopts."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from sash.operators.kernels import treap as binary
from sash.operators.kernels.treap import Treap
from sash.operators.kernels.wide_tree import WideTree, collect, count, delete, insert, kth, rank
from sash.state.memory import HeapMemory
from sash.state.ordering import encode_order

_MOST = 9_000


@pytest.mark.parametrize("kind", ["random", "ascending", "few values"])
def test_oracle_inserts_and_deletes(kind: str) -> None:
    rng = random.Random(5)
    memory = HeapMemory()
    treap = Treap(memory.scope("tree"))
    tree = WideTree(memory.scope("wide"), treap)
    keys: dict[int, str] = {}
    free = list(range(_MOST))
    root = serial = 0
    for turn in range(30):
        growing = turn < 15
        nodes = [free.pop(rng.randrange(len(free))) for _ in range(min(len(free), 500 if growing else 40))]
        texts = []
        for _ in nodes:
            serial += 1
            texts.append(
                f"a prefix of many bytes {serial:08}"
                if kind == "ascending"
                else rng.choice(["", "same", "a prefix of many bytes "])
                + str(rng.randrange(9 if kind != "random" else 9999))
            )
        treap.write(np.array(nodes, np.int64), *encode_order([pa.array(texts)], [False], [True], len(nodes)))
        for node, text in zip(nodes, texts, strict=True):
            tree.reserve(1, _MOST, 1)
            root = insert(tree.nodes, root, node)
            keys[node] = text
        ordered = sorted(keys, key=lambda node: (keys[node].encode(), node))
        some = len(keys) if turn in (5, 29) else rng.randrange(60 if growing else 900) % (len(keys) + 1)
        gone = ordered[:some] if kind == "ascending" else rng.sample(ordered, some)
        for node in gone:
            root = delete(tree.nodes, root, node)
            del keys[node]
        treap.free(np.array(gone, np.int64))
        free += gone
        treap = Treap(memory.scope("tree"))
        tree = WideTree(memory.scope("wide"), treap)
        expected = sorted(keys, key=lambda node: (keys[node].encode(), node))
        now = tree.nodes
        assert count(now, root) == len(expected)
        out = np.empty(len(expected), np.int64)
        collect(now, root, 0, len(expected), 1, out)
        assert out.tolist() == expected
        for k in rng.sample(range(len(expected)), min(len(expected), 40)):
            assert kth(now, root, k) == expected[k]
            assert rank(now, root, expected[k]) == k
            part = np.empty(min(70, len(expected) - k), np.int64)
            collect(now, root, k, len(part), 1, part)
            assert part.tolist() == expected[k : k + 70]
    assert root == 0


def test_space_follows_the_rows() -> None:
    memory = HeapMemory()
    treap = Treap(memory.scope("tree"))
    tree = WideTree(memory.scope("wide"), treap)
    random_keys = np.random.default_rng(1).integers(0, 2**40, 4_000)
    treap.write_words(np.arange(4_000), random_keys)
    roots = np.zeros(1_000, np.int64)
    for turn in range(6):
        for node in range(4_000):
            group = node % (1_000 if turn % 2 else 1)
            tree.reserve(1, 4_000, 1_000)
            roots[group] = insert(tree.nodes, roots[group], node)
        if turn == 1:
            used = int(tree.nodes.state[0])
        for node in range(4_000):
            group = node % (1_000 if turn % 2 else 1)
            roots[group] = delete(tree.nodes, roots[group], node)
        assert not roots.any()
    assert int(tree.nodes.state[0]) <= used, "blocks are used again"
    assert used < 24 * 4_000, "24 words per row, in small groups and in a large one"


def test_the_last_rows_of_ordered_arrivals_fill_their_blocks() -> None:
    memory = HeapMemory()
    treap = Treap(memory.scope("tree"))
    tree = WideTree(memory.scope("wide"), treap)
    treap.write_words(np.arange(6_400), np.arange(6_400))
    root = 0
    for node in range(6_400):
        tree.reserve(1, 6_400, 1)
        root = insert(tree.nodes, root, node)
    assert int(tree.nodes.state[0]) < 6 * 6_400


def test_treaps_of_earlier_versions_are_adopted() -> None:
    memory = HeapMemory()
    treap = Treap(memory.scope("tree"))
    treap.write_words(np.arange(300), np.random.default_rng(2).integers(0, 50, 300))
    roots = np.zeros(3, np.int64)
    for node in range(300):
        group = 0 if node < 280 else 2
        roots[group] = binary.insert(treap.nodes, roots[group], node)
    expected = [[binary.kth(treap.nodes, roots[group], k) for k in range(size)] for group, size in ((0, 280), (2, 20))]
    tree = WideTree(memory.scope("wide"), treap)
    tree.adopt(roots)
    assert [[kth(tree.nodes, roots[group], k) for k in range(size)] for group, size in ((0, 280), (2, 20))] == expected
    assert roots[1] == 0
    for node in range(300):
        roots[0 if node < 280 else 2] = delete(tree.nodes, roots[0 if node < 280 else 2], node)
    assert not roots.any()
