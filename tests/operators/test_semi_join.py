"""The semi-join and the anti-join against a recomputation at every instant (paper 1, W-MINUS)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.semi_join import SemiJoin
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import JOINED, KINDS, Bag, Life, check, clocks, drive, edge, lives, rows_of, stamped

KEYS: dict[str, tuple[tuple[int, int], ...]] = {
    "one": ((0, 0),),
    "two": ((0, 0), (1, 1)),
    "text": ((1, 1),),
    "none": (),
}


def answer(left: Bag, right: Bag, keys: tuple[tuple[int, int], ...], anti: bool) -> Bag:
    def matched(row: tuple[object, ...]) -> bool:
        return any(all(row[i] is not None and row[i] == other[j] for i, j in keys) for other in right)

    return Counter({row: copies for row, copies in left.items() if matched(row) != anti})


@pytest.mark.parametrize("anti", [False, True], ids=["semi", "anti"])
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@settings(max_examples=60)
@given(data=st.data())
def test_oracle_semi_join(keys: tuple[tuple[int, int], ...], anti: bool, data: st.DataObject) -> None:
    kinds = data.draw(st.tuples(st.sampled_from(JOINED), st.sampled_from(KINDS)))
    inputs = [data.draw(lives(kind)) for kind in kinds]

    def make(memory: Memory, edges: tuple[Edge, ...]) -> SemiJoin:
        return SemiJoin(memory, (edges[0], edges[1]), keys, anti)

    output = drive(make, [edge(kind) for kind in kinds], inputs, data.draw(clocks()))
    check(output, inputs, lambda left, right: answer(left, right, keys, anti))


def changes(anti: bool, left: list[Life], right: list[Life]) -> list[tuple[int, int, object]]:
    operator = SemiJoin(HeapMemory(), (edge("calendar"), edge("calendar")), ((0, 0),), anti)
    output = operator.process([stamped(left), stamped(right)], 100)
    return [*zip(output.ts.tolist(), output.sign.tolist(), (row[1] for row in rows_of(output)), strict=True)]


def test_all_duplicates_on_the_left_come_back_when_the_last_match_expires() -> None:
    """Erratum 2: a negative row on R with no duplicate left in R produces positive rows for the matches in S."""
    left = [Life(0, 200, (1, "a")), Life(0, 200, (1, "a")), Life(0, 200, (1, "b"))]
    right = [Life(2, 4, (1, "x")), Life(3, 6, (1, "y"))]
    found = changes(True, left, right)
    assert [(ts, sign) for ts, sign, _ in found] == [(0, 1)] * 3 + [(2, -1)] * 3 + [(6, 1)] * 3
    assert sorted(value for ts, _, value in found if ts == 6) == ["a", "a", "b"]


def test_a_match_that_is_replaced_at_its_last_instant_changes_nothing() -> None:
    left, right = [Life(0, 200, (1, "a"))], [Life(0, 5, (1, "x")), Life(5, 9, (1, "y"))]
    assert changes(False, left, right) == [(0, 1, "a"), (9, -1, "a")]


def test_a_null_key_matches_nothing() -> None:
    left, right = [Life(0, 5, (None, "a"))], [Life(0, 9, (None, "x"))]
    assert changes(True, left, right) == [(0, 1, "a"), (5, -1, "a")]
    assert changes(False, left, right) == []


def test_many_left_rows_flip_at_once() -> None:
    left = [Life(0, 200, (1, str(i))) for i in range(5000)]
    found = changes(True, left, [Life(1, 3, (1, "x"))] * 10)
    assert Counter((ts, sign) for ts, sign, _ in found) == {(0, 1): 5000, (1, -1): 5000, (3, 1): 5000}


def test_dead_keys_leave_no_state() -> None:
    operator = SemiJoin(HeapMemory(), (edge("fifo"), edge("calendar")), ((0, 0),), True)
    rows = [Life(0, 5, (key, "x")) for key in (*range(20), None)]
    operator.process([stamped(rows), stamped(rows)], 5)
    assert operator.state_rows == 41
    operator.process([stamped([]), stamped([])], 100)
    assert operator.state_rows == 0
