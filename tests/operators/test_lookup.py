"""The join with a relation that never changes, against a loop over all pairs; keys near one another and far apart."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.lookup import CLOSE, CloseKeys, HashedKeys, Lookup, index_of
from sash.plan.nodes import JoinKind
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.time import FOREVER

LEAST, MOST = -(2**63), 2**63 - 1
NEAR = st.integers(-4, 4)
ANY = NEAR | st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST])
KEYS = st.lists(st.none() | NEAR, max_size=8) | st.lists(st.none() | ANY, max_size=8)


def _pairs(rows: list[int | None], table: list[int | None], kind: JoinKind) -> list[tuple[int, int | None]]:
    """Numbers of rows with numbers of their partners; in what a join without partners gives, None."""
    made: list[tuple[int, int | None]] = []
    for number, key in enumerate(rows):
        partners = [other for other, value in enumerate(table) if value is not None and value == key]
        if kind in ("semi", "anti"):
            made += [(number, None)] if bool(partners) == (kind == "semi") else []
        else:
            made += [(number, other) for other in partners] or ([(number, None)] if kind == "left" else [])
    return made


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@settings(max_examples=100)
@given(rows=st.lists(st.none() | ANY, max_size=12), table=KEYS)
@example(rows=[1, 2, None, 2, 9], table=[2, 1, 2, None])
@example(rows=[1, 2, 3], table=[3, 1, 2])
@example(rows=[LEAST, MOST, 0], table=[LEAST, MOST])
@example(rows=[LEAST, MOST], table=[MOST, MOST - 1])
@example(rows=[MOST, LEAST], table=[LEAST, LEAST + 1])
@example(rows=[1, None], table=[])
@example(rows=[], table=[1, 2])
def test_rows_meet_all_that_have_their_key(kind: JoinKind, rows: list[int | None], table: list[int | None]) -> None:
    relation = pa.table({"key": pa.array(table, pa.int64()), "number": pa.array(range(len(table)), pa.int64())})
    edge = Edge((pa.int64(), pa.int64()), "explicit")
    operator = Lookup(HeapMemory(), (edge,), relation, kind, ((1, 0),))
    columns = (pa.array(range(len(rows)), pa.int64()), pa.array(rows, pa.int64()))
    batch = ChangeBatch(np.arange(len(rows)), np.full(len(rows), FOREVER), np.ones(len(rows), np.int8), columns)
    given_back = operator.process((batch,), FOREVER)
    numbers = given_back.columns[0].to_pylist()
    partners = given_back.columns[3].to_pylist() if kind in ("inner", "left") else [None] * len(numbers)
    expected = _pairs(rows, table, kind)
    assert sorted(zip(numbers, partners, strict=True), key=str) == sorted(expected, key=str)
    assert numbers == sorted(numbers)
    assert given_back.ts.tolist() == numbers


@pytest.mark.parametrize(
    ("column", "close"),
    [
        (pa.array([5, 3, 5], pa.int32()), True),
        (pa.array([0, 2 * CLOSE - 1], pa.int64()), True),
        (pa.array([0, 2 * CLOSE], pa.int64()), False),
        (pa.array([19_000, 19_002], pa.date32()), True),
        (pa.array([1.0, 2.0], pa.float64()), False),
        (pa.array(["a", "b"]), False),
        (pa.array([], pa.int64()), False),
    ],
)
def test_keys_that_are_close_are_found_by_their_places(column: pa.Array, close: bool) -> None:
    index = index_of([column], len(column))
    assert isinstance(index, CloseKeys if close else HashedKeys)
    found, codes = index.find([column], len(column))
    assert found.tolist() == list(range(len(column)))
    assert codes.tolist() == index.codes.tolist()
    assert len(set(codes.tolist())) == len(set(column.to_pylist()))
