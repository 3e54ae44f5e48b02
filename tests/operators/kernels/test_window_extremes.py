"""Smallest values of ranges of positions, in trees of several levels, as rows come and go."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from sash.operators.base import Edge
from sash.operators.kernels.treap import Treap
from sash.operators.kernels.wide_tree import WideTree, delete, insert
from sash.operators.kernels.window_extremes import first_at_most, last_at_most, least_between
from sash.operators.over import Over
from sash.operators.over_order import OrderedRows
from sash.plan.expressions import AggregateCall, Column
from sash.plan.nodes import SortKey
from sash.plan.window_calls import RUNNING, RUNNING_ROWS, Bound, Frame, WindowCall
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory


def test_oracle_smallest_values() -> None:
    rng = random.Random(11)
    rows = 4_000
    treap = Treap(HeapMemory())
    tree = WideTree(HeapMemory(), treap)
    tree.keep_values()
    keys, values = np.array(rng.sample(range(10 * rows), rows)), np.array([rng.randrange(5_000) for _ in range(rows)])
    treap.write_words(np.arange(rows), keys)
    tree.write_values(np.arange(rows), values)
    tree.reserve(1 << 20, rows, 1)
    root, inside = 0, set()
    for turn in range(2 * rows):
        node = rng.randrange(rows)
        if node in inside and turn > rows:
            root = delete(tree.nodes, root, node)
            inside.remove(node)
        elif node not in inside:
            root = insert(tree.nodes, root, node)
            inside.add(node)
        if turn % 400 or not inside:
            continue
        ordered = [int(values[node]) for node in sorted(inside, key=lambda node: keys[node])]
        for _ in range(30):
            start = rng.randrange(len(ordered))
            stop = rng.randrange(start + 1, len(ordered) + 1)
            assert least_between(tree.nodes, root, start, stop) == min(ordered[start:stop])
            bound = rng.choice([0, 1, 5, 100, 4_000])
            expected = next((at for at in range(start, len(ordered)) if ordered[at] <= bound), len(ordered))
            assert first_at_most(tree.nodes, root, start, bound) == expected
            expected = next((at for at in range(stop - 1, -1, -1) if ordered[at] <= bound), -1)
            assert last_at_most(tree.nodes, root, stop, bound) == expected


@pytest.mark.parametrize(
    "values", [range(2_000), [n % 7 for n in range(2_000)], [n * 7919 % 2_003 for n in range(2_000)]]
)
def test_running_extremes_evaluate_the_rows_that_change(values: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows evaluated are those of the answer that change, and the rows that arrive."""
    evaluated: list[int] = []
    advance = OrderedRows.advance

    def watched(self: OrderedRows, *arguments: object) -> object:
        found = advance(self, *arguments)  # type: ignore[arg-type]
        evaluated.append(len(found[1]))
        return found

    monkeypatch.setattr(OrderedRows, "advance", watched)
    number = Column(1, "v", pa.int64())
    call = WindowCall(
        "max", (), pa.int64(), (SortKey(0),), RUNNING_ROWS, aggregate=AggregateCall("max", (number,), pa.int64())
    )
    operator = Over(HeapMemory(), (Edge((pa.int64(), pa.int64()), "fifo"),), (), (0, 1), (call,))
    ts = np.arange(2_000)
    batch = ChangeBatch.stamped(ts, ts + 1_000, (pa.array(ts), pa.array(list(values), pa.int64())))
    output = operator.process([batch], 2_000)
    assert sum(evaluated) <= 2_000 + int((output.sign > 0).sum())
    live: dict[int, int] = {}
    for key, sign, value in zip(output.columns[0], output.sign, output.columns[2], strict=True):
        if sign < 0:
            live.pop(key.as_py(), None)
        else:
            live[key.as_py()] = value.as_py()
    assert live == {at: max(list(values)[1_000 : at + 1]) for at in range(1_000, 2_000)}


NEAR = Frame(Bound("value", 0, 2), Bound("value", 0, 3))
VALUE = Column(1, "v", pa.int64())
CHANGING_LITTLE = {
    "max": WindowCall("max", (), pa.int64(), (SortKey(0),), NEAR, aggregate=AggregateCall("max", (VALUE,), pa.int64())),
    "first": WindowCall("first_value", (VALUE,), pa.int64(), (SortKey(0),), NEAR, 1),
    "third": WindowCall("nth_value", (VALUE,), pa.int64(), (SortKey(0),), NEAR, 3),
    "last": WindowCall("last_value", (VALUE,), pa.int64(), (SortKey(0),), NEAR, -1),
    "last up to now": WindowCall("last_value", (VALUE,), pa.int64(), (SortKey(0),), RUNNING, -1),
    "last of rows": WindowCall("last_value", (VALUE,), pa.int64(), (SortKey(0),), RUNNING_ROWS, -1),
}


@pytest.mark.parametrize("name", CHANGING_LITTLE)
def test_frames_by_value_evaluate_the_rows_that_change(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames have some 300 rows, and rows come in random order, but few answers change with each."""
    evaluated: list[int] = []
    advance = OrderedRows.advance

    def watched(self: OrderedRows, *arguments: object) -> object:
        found = advance(self, *arguments)  # type: ignore[arg-type]
        evaluated.append(len(found[1]))
        return found

    monkeypatch.setattr(OrderedRows, "advance", watched)
    rng = np.random.default_rng(3)
    keys, ts = rng.permutation(2_000), np.arange(2_000)
    columns = [keys, rng.integers(0, 1_000_000, 2_000), keys - 150, keys + 150]
    operator = Over(HeapMemory(), (Edge((pa.int64(),) * 4, "fifo"),), (), (0, 1), (CHANGING_LITTLE[name],))
    batch = ChangeBatch.stamped(ts, ts + 1_000, tuple(pa.array(column) for column in columns))
    output = operator.process([batch], 2_000)
    assert sum(evaluated) <= 2_000 + 4 * int((output.sign > 0).sum())
    assert sum(evaluated) < 30_000
