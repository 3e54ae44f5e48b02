"""Expire turns the end of a row's life into a negative row, at its instant (paper 1, W-Expire)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.expire import Expire
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import Life, check, clocks, drive, edge, lives, rows_of, stamped


def make(memory: Memory, edges: tuple[Edge, ...]) -> Expire:
    return Expire(memory, (edges[0],))


@settings(max_examples=150)
@given(data=st.data())
def test_oracle_expire(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["fifo", "calendar"]))
    inputs = [data.draw(lives(kind))]
    output = drive(make, [edge(kind)], inputs, data.draw(clocks()))
    check(output, inputs, lambda live: live)


def test_a_row_is_taken_back_at_its_expiry_and_not_before_the_clock_passes_it() -> None:
    operator = Expire(HeapMemory(), (edge("fifo"),))
    first = operator.process([stamped([Life(1, 6, (1, "a"))])], 6)
    assert (first.ts.tolist(), first.sign.tolist()) == ([1], [1])
    second = operator.process([stamped([])], 7)
    assert (second.ts.tolist(), second.sign.tolist(), rows_of(second)) == ([6], [-1], [(1, "a")])
    assert operator.state_rows == 0


def test_a_row_that_is_replaced_by_its_equal_at_one_instant_is_silent() -> None:
    operator = Expire(HeapMemory(), (edge("fifo"),))
    output = operator.process([stamped([Life(0, 5, (1, "a")), Life(5, 10, (1, "a"))])], 6)
    assert (output.ts.tolist(), output.sign.tolist()) == ([0], [1])


def test_ends_that_are_told_stand_in_the_row_and_in_what_takes_it_back() -> None:
    operator = Expire(HeapMemory(), (edge("calendar"),), with_expiration=True)
    output = operator.process([stamped([Life(1, 9, (1, "a")), Life(2, 5, (2, "b"))])], 20)
    assert rows_of(output) == [(1, "a", 9), (2, "b", 5), (2, "b", 5), (1, "a", 9)]
    assert (output.ts.tolist(), output.sign.tolist()) == ([1, 2, 5, 9], [1, 1, -1, -1])
