"""The window hash join against the product of the live rows, recomputed at every instant (papers 1, 4 and 5)."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.join import Join
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import (
    DTYPES,
    JOINED,
    KINDS,
    Bag,
    Life,
    check,
    clocks,
    drive,
    edge,
    lives,
    rows_of,
    stamped,
)

KEYS: dict[str, tuple[tuple[int, int], ...]] = {
    "one": ((0, 0),),
    "two": ((0, 0), (1, 1)),
    "text": ((1, 1),),
    "none": (),
}


def answer(left: Bag, right: Bag, keys: tuple[tuple[int, int], ...]) -> Bag:
    result: Bag = Counter()
    for a, copies in left.items():
        for b, others in right.items():
            if all(a[i] is not None and a[i] == b[j] for i, j in keys):
                result[a + b] += copies * others
    return result


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@settings(max_examples=80)
@given(data=st.data())
def test_oracle_join(keys: tuple[tuple[int, int], ...], data: st.DataObject) -> None:
    kinds = data.draw(st.tuples(st.sampled_from(JOINED), st.sampled_from(JOINED)))
    inputs = [data.draw(lives(kind, size=15)) for kind in kinds]

    def make(memory: Memory, edges: tuple[Edge, ...]) -> Join:
        return Join(memory, (edges[0], edges[1]), keys)

    output = drive(make, [edge(kind) for kind in kinds], inputs, data.draw(clocks()), {*kinds} <= {"fifo", "calendar"})
    check(output, inputs, lambda left, right: answer(left, right, keys))


@settings(max_examples=80)
@given(data=st.data())
def test_oracle_spoken_join(data: st.DataObject) -> None:
    """Stamped inputs and retractions: the results of a row are found by a second probe."""
    kinds = data.draw(st.tuples(*[st.sampled_from(["fifo", "calendar"])] * 2))
    inputs = [data.draw(lives(kind, size=15)) for kind in kinds]

    def make(memory: Memory, edges: tuple[Edge, ...]) -> Join:
        return Join(memory, (edges[0], edges[1]), ((0, 0),), retracting=True)

    output = drive(make, [edge(kind) for kind in kinds], inputs, data.draw(clocks()))
    check(output, inputs, lambda left, right: answer(left, right, ((0, 0),)))


@settings(max_examples=80)
@given(data=st.data(), purge=st.integers(1, 40))
def test_oracle_lazily_purged_join(data: st.DataObject, purge: int) -> None:
    """Expired rows that are still in the state have no matches."""
    kinds = data.draw(st.tuples(*[st.sampled_from(["fifo", "calendar"])] * 2))
    inputs = [data.draw(lives(kind, size=15)) for kind in kinds]

    def make(memory: Memory, edges: tuple[Edge, ...]) -> Join:
        return Join(memory, (edges[0], edges[1]), ((0, 0),), purge=purge)

    output = drive(make, [edge(kind) for kind in kinds], inputs, data.draw(clocks()), True)
    check(output, inputs, lambda left, right: answer(left, right, ((0, 0),)))


def test_rows_that_ended_are_purged_at_intervals() -> None:
    lazy = Join(HeapMemory(), (edge("fifo"), edge("fifo")), ((0, 0),), purge=10)
    empty = stamped([])
    lazy.process([stamped([Life(20, 25, (1, "a"))]), empty], 21)
    assert lazy.state_rows == 1
    assert len(lazy.process([empty, stamped([Life(26, 29, (1, "b"))])], 27)) == 0, (
        "the row of 20 is over, if still there"
    )
    assert lazy.state_rows == 2
    lazy.process([empty, empty], 30)
    assert lazy.state_rows == 2, "nine since the last purge"
    lazy.process([empty, empty], 31)
    assert lazy.state_rows == 0


@settings(max_examples=60)
@given(data=st.data())
def test_oracle_pruned_columns(data: st.DataObject) -> None:
    kinds = data.draw(st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
    inputs = [data.draw(lives(kind, size=15)) for kind in kinds]

    def make(memory: Memory, edges: tuple[Edge, ...]) -> Join:
        return Join(memory, (edges[0], edges[1]), ((0, 0),), (1,), (1, 0))

    def pruned(left: Bag, right: Bag) -> Bag:
        result: Bag = Counter()
        for row, copies in answer(left, right, ((0, 0),)).items():
            result[(row[1], row[3], row[2])] += copies
        return result

    output = drive(make, [edge(kind) for kind in kinds], inputs, data.draw(clocks()), "explicit" not in kinds)
    check(output, inputs, pruned)


def test_the_result_of_stamped_rows_lives_while_both_do() -> None:
    operator = Join(HeapMemory(), (edge("fifo"), edge("calendar")), ((0, 0),))
    output = operator.process([stamped([Life(1, 10, (1, "a"))]), stamped([Life(4, 8, (1, "b"))])], 5)
    assert (output.ts.tolist(), output.exp.tolist(), rows_of(output)) == ([4], [8], [(1, "a", 1, "b")])


def test_rows_of_one_instant_join_once() -> None:
    """Erratum 4: rows with equal timestamps in different streams join once, not twice."""
    operator = Join(HeapMemory(), (edge("fifo"), edge("fifo")), ((0, 0),))
    output = operator.process([stamped([Life(3, 8, (1, "a"))]), stamped([Life(3, 8, (1, "b"))])], 100)
    assert rows_of(output) == [(1, "a", 1, "b")]


def test_a_row_that_expires_as_its_partner_comes_does_not_join() -> None:
    operator = Join(HeapMemory(), (edge("fifo"), edge("fifo")), ((0, 0),))
    output = operator.process([stamped([Life(0, 5, (1, "a"))]), stamped([Life(5, 10, (1, "b"))])], 100)
    assert len(output) == 0


def test_expired_rows_and_null_keys_leave_no_state() -> None:
    operator = Join(HeapMemory(), (edge("fifo"), edge("calendar")), ((0, 0),))
    rows = [Life(0, 5, (key, "x")) for key in (*range(20), None)]
    operator.process([stamped(rows), stamped(rows)], 5)
    assert operator.state_rows == 40
    operator.process([stamped([]), stamped([])], 100)
    assert operator.state_rows == 0


def test_many_matches_and_columns_of_several_types() -> None:
    dtypes = (*DTYPES, pa.float64(), pa.bool_(), pa.decimal128(12, 2))
    values = (7, "x", 0.5, True, None)
    operator = Join(HeapMemory(), (edge("fifo", dtypes), edge("fifo", dtypes)), ((0, 0),))
    rows = [Life(0, 5, values)] * 100
    output = operator.process([stamped(rows, dtypes), stamped(rows, dtypes)], 100)
    assert len(output) == 10_000
    assert set(rows_of(output)) == {values + values}


def test_many_rows_of_one_key_all_meet() -> None:
    """More rows than the pool of vectors has room for at first."""
    operator = Join(HeapMemory(), (edge("fifo"), edge("fifo")), ((0, 0),))
    many = stamped([Life(ts, 10_000, (1, "a")) for ts in range(1_500)])
    operator.process([many, stamped([])], 1_500)
    output = operator.process([stamped([]), stamped([Life(1_600, 9_000, (1, "b"))])], 1_601)
    assert len(output) == 1_500
    assert operator.state_rows == 1_501
