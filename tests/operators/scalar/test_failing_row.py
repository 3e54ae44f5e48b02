from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sash.errors import StageError
from sash.operators.scalar import evaluate, evaluate_all
from sash.operators.scalar.failing_row import split_row
from sash.plan.expressions import Call, Column, Literal
from sash.spark.stage_errors import naming_queries

ITEM = Column(0, "item", pa.string())
PRICE, COUNT = Column(1, "price", pa.int64()), Column(2, "n", pa.int64())
RATIO = Call("int_divide", (PRICE, COUNT), pa.int64())


def columns(rows: int, zeros: tuple[int, ...]) -> list[pa.Array]:
    counts = np.ones(rows, np.int64)
    counts[list(zeros)] = 0
    items = pa.array([f"item {row}" for row in range(rows)])
    return [items, pa.array(np.arange(rows)), pa.array(counts)]


@pytest.mark.parametrize("zeros", [(0,), (999,), (417, 418, 900)])
def test_the_first_row_that_fails_is_named_with_what_was_read(zeros: tuple[int, ...]) -> None:
    with pytest.raises(Exception, match="ero") as problem:
        evaluate(RATIO, columns(1000, zeros), 1000)
    assert problem.value.__notes__ == [f"in the row (price {zeros[0]}, n 0)"]


def test_only_chosen_rows_count() -> None:
    given, chosen = columns(100, (3, 70)), np.arange(50, 90)
    with pytest.raises(Exception, match="ero") as problem:
        evaluate_all((ITEM, RATIO), given, len(chosen), chosen)
    assert problem.value.__notes__ == ["in the row (item item 70, price 70, n 0)"]


def test_an_expression_without_columns_names_none() -> None:
    with pytest.raises(Exception, match="ero") as problem:
        evaluate(Call("int_divide", (Literal(1, pa.int64()), Literal(0, pa.int64())), pa.int64()), columns(3, ()), 3)
    assert not getattr(problem.value, "__notes__", None)


def test_the_row_reaches_the_error_of_a_stage() -> None:
    with pytest.raises(StageError) as problem, naming_queries(["q"]):
        evaluate(RATIO, columns(10, (4,)), 10)
    text, row = split_row(str(problem.value))
    assert row == "(price 4, n 0)"
    assert text.startswith('queries ["q"] failed: ')
    assert "in the row" not in text
    assert split_row("parked: x in the row (a 1) (its outbox has net changes only)") == (
        "parked: x (its outbox has net changes only)", "(a 1)",
    )  # fmt: skip
