"""Alike queries against a recomputation at every instant: rows with the constants of every query that has them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.alike import Alike
from sash.operators.base import Edge
from sash.operators.constants import Comparison
from sash.plan.expressions import Call, Column, Expression, Literal
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import JOINED, Bag, Life, check, clocks, drive, edge, lives, rows_of, stamped

VALUES = (pa.int64(), pa.string())
CONSTANTS = (pa.int64(), pa.int64(), pa.string())
"""The number of a query, and constants for both columns of a row."""

BELOW = Call("lt", (Column(0, "", pa.int64()), Column(3, "", pa.int64())), pa.bool_())
KEY = ((1, 2),)

CASES: dict[str, tuple[tuple[tuple[int, int], ...], Comparison | None, Expression | None]] = {
    "key": (KEY, None, None),
    "greater": ((), (0, "gt", 1), None),
    "greater or equal": ((), (0, "ge", 1), None),
    "less": ((), (0, "lt", 1), None),
    "less or equal": ((), (0, "le", 1), None),
    "key and comparison": (KEY, (0, "ge", 1), None),
    "key and condition": (KEY, None, BELOW),
    "condition": ((), None, BELOW),
    "no difference": ((), None, None),
}
COMPARED = {
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


def passes(row: tuple[Any, ...], constants: tuple[Any, ...], name: str) -> bool:
    keys, comparison, condition = CASES[name]
    tests = [] if comparison is None else [comparison]
    tests += [] if condition is None else [(0, "lt", 1)]
    equal = all(row[a] is not None and row[a] == constants[b] for a, b in keys)
    return equal and all(
        row[a] is not None and constants[b] is not None and COMPARED[function](row[a], constants[b])
        for a, function, b in tests
    )


def answer(rows: Bag, constants: Bag, name: str) -> Bag:
    found: Bag = Counter()
    for row, copies in rows.items():
        for one, times in constants.items():
            if passes(row, one, name):
                found[(*row, *one)] += copies * times
    return found


ROWS = st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "", "é"]))
QUERIES = st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([None, 0, 1, 2]), st.sampled_from([None, "", "é"]))


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=60)
@given(data=st.data())
def test_oracle_alike(name: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(JOINED))
    inputs = [data.draw(lives(kind, ROWS)), data.draw(lives("explicit", QUERIES, 6))]
    keys, comparison, condition = CASES[name]

    def make(memory: Memory, edges: tuple[Edge, ...]) -> Alike:
        return Alike(memory, (edges[0], edges[1]), keys, comparison, condition)

    output = drive(make, [edge(kind, VALUES), edge("explicit", CONSTANTS)], inputs, data.draw(clocks()))
    check(output, inputs, lambda rows, constants: answer(rows, constants, name))


def test_doubles_are_compared_as_spark_does() -> None:
    """NaN is the largest value, and 0.0 equals -0.0."""
    dtypes = pa.float64(), pa.int64()
    values = [float("-inf"), -1.5, -0.0, 0.0, 2.0, float("inf"), float("nan")]
    rows = [Life(0, 9, (value,)) for value in values]
    for function, constant, count in (("gt", 0.0, 3), ("ge", 0.0, 5), ("lt", float("nan"), 6), ("le", -0.0, 4)):
        operator = Alike(
            HeapMemory(), (edge("fifo", dtypes[:1]), edge("explicit", (dtypes[1], dtypes[0]))), (), (0, function, 1)
        )
        queries = stamped([Life(0, 9, (7, constant))], (dtypes[1], dtypes[0]))
        found = operator.process([stamped(rows, dtypes[:1]), queries], 5)
        assert len(found) == count, function


def test_a_query_without_rows_has_the_row_of_an_empty_aggregate() -> None:
    """It is exchanged for the row of the query's keys, and returns when that row is gone."""
    dtypes = pa.int64(), pa.string()
    otherwise = (Literal(0, pa.int64()), Literal(None, pa.string()))
    operator = Alike(
        HeapMemory(),
        (edge("calendar", dtypes), edge("explicit", (pa.int64(), pa.string()))),
        ((1, 1),),
        otherwise=otherwise,
    )
    queries = stamped([Life(1, 99, (7, "a")), Life(1, 99, (8, "b"))], (pa.int64(), pa.string()))
    found = operator.process([stamped([Life(3, 5, (4, "a"))], dtypes), queries], 9)
    changes = sorted(zip(found.ts.tolist(), found.sign.tolist(), rows_of(found), strict=True), key=str)
    assert changes == [
        (1, 1, (0, None, 7, "a")),
        (1, 1, (0, None, 8, "b")),
        (3, -1, (0, None, 7, "a")),
        (3, 1, (4, "a", 7, "a")),
        (5, -1, (4, "a", 7, "a")),
        (5, 1, (0, None, 7, "a")),
    ]


def test_changes_that_cancel_out_within_a_batch_are_left_out_of_net_changes() -> None:
    dtypes = (pa.int64(),)
    operator = Alike(
        HeapMemory(),
        (edge("fifo", dtypes), edge("explicit", (pa.int64(), pa.int64()))),
        (),
        (0, "gt", 1),
        net_batches=True,
    )
    queries = stamped([Life(0, 99, (1, 2))], (pa.int64(), pa.int64()))
    rows = stamped([Life(1, 4, (5,)), Life(6, 99, (7,)), Life(7, 99, (1,))], dtypes)
    found = operator.process([rows, queries], 9)
    assert list(zip(found.ts.tolist(), found.sign.tolist(), rows_of(found), strict=True)) == [(6, 1, (7, 1, 2))]
    assert operator.state_rows == 3
