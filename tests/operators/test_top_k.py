"""The maintained top-k against sorting the live rows at every instant."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.kernels.wide_tree import count
from sash.operators.top_k import TopK
from sash.plan.nodes import Ranked, SortKey
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import KINDS, Bag, Life, Row, check, clocks, drive, edge, lives, rows_of, stamped

ROWS = st.tuples(st.sampled_from([None, -3, 0, 1, 2, 300]), st.sampled_from([None, "", "a", "a\0", "ab", "é"]))
ORDERS = {
    "ascending": (SortKey(0),),
    "descending, nulls last": (SortKey(0, descending=True, nulls_first=False),),
    "text, then number": (SortKey(1, descending=True), SortKey(0, nulls_first=False)),
    "none": (),
}


def ordered(live: Bag, order: tuple[SortKey, ...]) -> list[Row]:
    rows = list(live.elements())
    keys = [*order, *(SortKey(column) for column in range(2) if column not in {key.column for key in order})]
    for key in reversed(keys):
        filled = [row for row in rows if row[key.column] is not None]
        filled.sort(key=lambda row: _plain(row[key.column]), reverse=key.descending)
        absent = [row for row in rows if row[key.column] is None]
        rows = absent + filled if key.nulls_first else filled + absent
    return rows


def _plain(value: object) -> object:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@settings(max_examples=80)
@given(data=st.data())
def test_oracle_top_k(order: tuple[SortKey, ...], data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    inputs = [data.draw(lives(kind, ROWS))]
    limit, offset = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3))

    def make(memory: Memory, edges: tuple[Edge, ...]) -> TopK:
        return TopK(memory, (edges[0],), order, limit, offset)

    output = drive(make, [edge(kind)], inputs, data.draw(clocks()))
    check(output, inputs, lambda live: Counter(ordered(live, order)[offset : offset + limit]))


def test_a_row_behind_the_last_rank_says_nothing_until_it_is_needed() -> None:
    operator = TopK(HeapMemory(), (edge("calendar"),), (SortKey(0, descending=True),), 1)
    rows = [Life(0, 9, (5, "a")), Life(1, 20, (3, "b")), Life(2, 20, (4, "c"))]
    output = operator.process([stamped(rows)], 15)
    assert list(zip(output.ts.tolist(), output.sign.tolist(), rows_of(output), strict=True)) == [
        (0, 1, (5, "a")), (9, -1, (5, "a")), (9, 1, (4, "c")),
    ]  # fmt: skip


def test_rows_that_only_pass_through_the_top_at_one_instant_are_not_seen() -> None:
    operator = TopK(HeapMemory(), (edge("fifo"),), (SortKey(0),), 1)
    output = operator.process([stamped([Life(1, 6, (n, "x")) for n in (9, 8, 7, 1)])], 2)
    assert rows_of(output) == [(1, "x")]


def test_expired_rows_leave_no_state() -> None:
    operator = TopK(HeapMemory(), (edge("fifo"),), (SortKey(1),), 3)
    operator.process([stamped([Life(0, 5, (n, "long enough for the heap of bytes")) for n in range(50)])], 1)
    assert operator.state_rows == 50
    operator.process([stamped([])], 100)
    assert operator.state_rows == 0


def _tree_rows(memory: HeapMemory, operator: TopK) -> int:
    return int(count(operator._tree.nodes, int(memory.array("ends", np.int64, 2)[0])))


@pytest.mark.parametrize(("kind", "limit", "kept"), [("fifo", 3, 60), ("calendar", 3, 2_000), ("fifo", 40, 2_000)])
def test_rows_that_can_never_be_among_the_first_leave_the_tree(kind: str, limit: int, kept: int) -> None:
    memory = HeapMemory()
    operator = TopK(memory, (edge(kind),), (SortKey(0),), limit)
    values = random.Random(3).sample(range(10_000), 2_000)
    operator.process([stamped([Life(n, n + 5_000, (value, "x")) for n, value in enumerate(values)])], 2_000)
    assert operator.state_rows == 2_000
    assert (_tree_rows(memory, operator) == 2_000) == (kept == 2_000)
    assert _tree_rows(memory, operator) <= kept
    end = operator.process([stamped([])], 10_000)
    live = sorted(values)[:limit]
    for sign, row in zip(end.sign, rows_of(end), strict=True):
        live.append(row[0]) if sign > 0 else live.remove(row[0])
    assert live == []
    assert _tree_rows(memory, operator) == 0


@settings(max_examples=60)
@given(data=st.data())
def test_oracle_top_k_of_each(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    inputs = [data.draw(lives(kind, ROWS))]
    limit, offset = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 2))
    order = (SortKey(0, descending=True),)

    def make(memory: Memory, edges: tuple[Edge, ...]) -> TopK:
        return TopK(memory, (edges[0],), order, limit, offset, (1,))

    def answer(live: Bag) -> Bag:
        groups = [Counter({row: n for row, n in live.items() if row[1] == g}) for g in {row[1] for row in live}]
        return Counter(row for group in groups for row in ordered(group, order)[offset : offset + limit])

    check(drive(make, [edge(kind)], inputs, data.draw(clocks())), inputs, answer)


@pytest.mark.parametrize("ranked", ["rank", "dense_rank"])
@settings(max_examples=120)
@given(data=st.data())
def test_oracle_first_ranks(ranked: Ranked, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    inputs = [data.draw(lives(kind, ROWS))]
    limit = data.draw(st.integers(0, 4))
    by = data.draw(st.sampled_from([(), (1,)]))
    order = (SortKey(0, descending=True),)

    def make(memory: Memory, edges: tuple[Edge, ...]) -> TopK:
        return TopK(memory, (edges[0],), order, limit, 0, by, ranked)

    def answer(live: Bag) -> Bag:
        found: Bag = Counter()
        for group in {row[1] for row in live} if by else {None}:
            rows = [row for row in ordered(live, order) if not by or row[1] == group]
            places = [row[0] for row in rows]
            if ranked == "dense_rank":
                places = list(dict.fromkeys(places))
            found.update(row for row in rows if places.index(row[0]) < limit)
        return found

    check(drive(make, [edge(kind)], inputs, data.draw(clocks())), inputs, answer)
