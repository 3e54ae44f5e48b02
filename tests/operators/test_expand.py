from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given

from sash.operators.expand import Expand
from sash.plan.expressions import Column, Expression, Literal
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from tests.operators.reference import DTYPES, Life, edge, lives, stamped

NUMBER, TEXT = Column(0, "n", DTYPES[0]), Column(1, "t", DTYPES[1])
NO_NUMBER, NO_TEXT = Literal(None, DTYPES[0]), Literal(None, DTYPES[1])
SETS: tuple[tuple[Expression, ...], ...] = (
    (NUMBER, TEXT, Literal(0, pa.int32())),
    (NUMBER, NO_TEXT, Literal(1, pa.int32())),
    (NO_NUMBER, NO_TEXT, Literal(3, pa.int32())),
)


def expand(batch: ChangeBatch, lists: tuple[tuple[Expression, ...], ...] = SETS) -> ChangeBatch:
    return Expand(HeapMemory(), (edge("explicit"),), lists).process((batch,), 0)


def rows(batch: ChangeBatch) -> list[tuple[object, ...]]:
    columns = [column.to_pylist() for column in batch.columns]
    return list(zip(batch.ts.tolist(), batch.exp.tolist(), batch.sign.tolist(), *columns, strict=True))


@given(lives("calendar"))
def test_every_row_is_there_once_per_list_for_its_whole_life(entries: list[Life]) -> None:
    made = rows(expand(stamped(entries)))
    assert Counter(made) == Counter(
        (ts, exp, 1, *row) for ts, exp, (n, t) in entries for row in ((n, t, 0), (n, None, 1), (None, None, 3))
    )
    assert [row[0] for row in made] == [life.ts for life in entries for _ in SETS]


def test_copies_that_cancel_out_at_one_instant_are_removed() -> None:
    columns = [pa.array([1, 1], DTYPES[0]), pa.array(["a", "b"], DTYPES[1])]
    batch = ChangeBatch.explicit(np.array([5, 5]), np.array([-1, 1], np.int8), columns)
    assert [row[2:] for row in rows(expand(batch))] == [(-1, 1, "a", 0), (1, 1, "b", 0)]


def test_no_rows_have_the_types_of_the_columns() -> None:
    assert [column.type for column in expand(stamped([])).columns] == [*DTYPES, pa.int32()]
