"""The set operations against counts recomputed at every instant (papers 1 and 5)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.errors import SashError
from sash.operators.set_operation import SetOperation
from sash.state.memory import HeapMemory
from tests.operators.reference import KINDS, Bag, Life, check, clocks, drive, edge, lives, stamped

COPIES = {
    "distinct": lambda v1, _: min(v1, 1),
    "except": lambda v1, v2: int(v1 > 0 and v2 == 0),
    "except_all": lambda v1, v2: max(v1 - v2, 0),
    "intersect": lambda v1, v2: int(v1 > 0 and v2 > 0),
    "intersect_all": min,
    "semi": lambda v1, v2: v1 if v2 > 0 else 0,
    "anti": lambda v1, v2: v1 if v2 == 0 else 0,
}


def answer(mode: str, left: Bag, right: Bag) -> Bag:
    return Counter({row: COPIES[mode](left[row], right[row]) for row in left})


@pytest.mark.parametrize("mode", [mode for mode in COPIES if mode != "distinct"])
@settings(max_examples=60)
@given(data=st.data())
def test_oracle_two_inputs(mode: str, data: st.DataObject) -> None:
    kinds = data.draw(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
    inputs = [data.draw(lives(kind)) for kind in kinds]
    output = drive(
        lambda memory, edges: SetOperation(memory, edges, mode), [edge(kind) for kind in kinds], inputs,
        data.draw(clocks()),
    )  # fmt: skip
    check(output, inputs, lambda left, right: answer(mode, left, right))


@settings(max_examples=60)
@given(data=st.data())
def test_oracle_distinct(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    inputs = [data.draw(lives(kind))]
    output = drive(
        lambda memory, edges: SetOperation(memory, edges, "distinct"), [edge(kind)], inputs, data.draw(clocks())
    )
    check(output, inputs, lambda left: answer("distinct", left, Counter()))


def test_except_takes_a_row_back_while_the_right_side_has_it_and_gives_it_again() -> None:
    """Erratum 2: the last duplicate on the right expires, so the rows on the left come back."""
    left, right = [Life(0, 20, (1, "a"))], [Life(2, 5, (1, "a")), Life(3, 8, (1, "a"))]
    operator = SetOperation(HeapMemory(), (edge("fifo"), edge("fifo")), "except")
    output = operator.process([stamped(left), stamped(right)], 100)
    assert list(zip(output.ts.tolist(), output.sign.tolist(), strict=True)) == [(0, 1), (2, -1), (8, 1), (20, -1)]


def test_except_all_counts_after_an_expiry_on_the_right() -> None:
    """Erratum 8: after a row expires on the right the test is v1 > v2 with the smaller v2."""
    left = [Life(0, 20, (1, "a")), Life(0, 20, (1, "a"))]
    right = [Life(1, 5, (1, "a")), Life(1, 9, (1, "a"))]
    operator = SetOperation(HeapMemory(), (edge("fifo"), edge("fifo")), "except_all")
    output = operator.process([stamped(left), stamped(right)], 20)
    assert list(zip(output.ts.tolist(), output.sign.tolist(), strict=True)) == [
        (0, 1), (0, 1), (1, -1), (1, -1), (5, 1), (9, 1),
    ]  # fmt: skip


def test_a_value_that_leaves_and_comes_at_one_instant_changes_nothing() -> None:
    operator = SetOperation(HeapMemory(), (edge("fifo"),), "distinct")
    output = operator.process([stamped([Life(0, 5, (1, "a")), Life(5, 10, (1, "a"))])], 8)
    assert list(zip(output.ts.tolist(), output.sign.tolist(), strict=True)) == [(0, 1)]


def test_dead_values_leave_no_state() -> None:
    operator = SetOperation(HeapMemory(), (edge("fifo"), edge("calendar")), "anti")
    operator.process([stamped([Life(0, 5, (i, "x")) for i in range(50)]), stamped([Life(0, 7, (1, "x"))])], 5)
    assert operator.state_rows == 101
    operator.process([stamped([]), stamped([])], 100)
    assert operator.state_rows == 0


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(SashError, match="use one of"):
        SetOperation(HeapMemory(), (edge("fifo"),), "except")
