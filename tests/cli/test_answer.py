from __future__ import annotations

from collections import Counter

import pytest
from rich.console import Console

from sash.cli.answer import AnswerBoard, TimeLimit, answer_table
from sash.cli.catalog import declared_catalog
from sash.plan.types import DOUBLE, STRING, Field
from sash.planning import plan_query

SCHEMA = (Field("k", STRING), Field("total", DOUBLE))


def shown(board: AnswerBoard, most: int = 10) -> str:
    console = Console(width=60, record=True, quiet=True)
    with console.capture() as capture:
        console.quiet = False
        console.print(answer_table(board, most))
    return capture.get()


def test_changes_are_folded_whatever_their_order_in_the_batch() -> None:
    board = AnswerBoard(SCHEMA)
    board.apply([("+", 1, ("a", 1.0)), ("+", 1, ("a", 1.0)), ("+", 2, (None, 2.0))])
    board.apply([("+", 5, ("b", 3.0)), ("-", 4, ("a", 1.0)), ("-", 4, (None, 2.0))])
    assert board.rows == Counter({("a", 1.0): 1, ("b", 3.0): 1})
    assert (board.batches, board.changes, board.as_of) == (2, 6, 5)


def test_the_answer_is_in_order_with_nulls_last() -> None:
    board = AnswerBoard(SCHEMA)
    board.apply([("+", 1, (None, 1.0)), ("+", 1, ("b", None)), ("+", 1, ("a", 2.0)), ("+", 1, ("a", 2.0))])
    assert board.answer() == [("a", 2.0), ("a", 2.0), ("b", None), (None, 1.0)]


@pytest.mark.parametrize(
    ("clause", "names"),
    [
        ("n", [None, "a", "c", "b"]),
        ("n DESC", ["b", "a", "c", None]),
        ("n DESC NULLS FIRST", [None, "b", "a", "c"]),
        ("n + 1", ["a", "b", "c", None]),
    ],
)
def test_the_answer_of_a_query_with_an_order_is_in_it(clause: str, names: list[str | None]) -> None:
    sql = f"SELECT k, n FROM s [NOW] ORDER BY {clause} LIMIT 9"
    planned = plan_query(sql, declared_catalog(["s(ts BIGINT, k STRING, n INT)"], []))
    board = AnswerBoard(planned.schema, planned.order)
    board.apply([("+", 1, row) for row in [("c", 1), (None, None), ("b", 2), ("a", 1)]])
    assert [row[0] for row in board.answer()] == names


def test_a_table_has_as_many_rows_as_there_is_room() -> None:
    board = AnswerBoard(SCHEMA)
    board.apply([("+", 1, (name, 1.0)) for name in "abcdef"])
    board.apply([("+", 1, (None, 1234.5))])
    text = shown(board)
    assert "1,234.50" in text
    assert "NULL" in text
    assert "f" in text
    assert "f" not in shown(board, 3)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_of_an_answer_counts_from_its_first_row() -> None:
    clock = Clock()
    limit = TimeLimit(5, patience=60, clock=clock)
    assert not limit.passed(changes=0)
    clock.now += 59
    assert not limit.passed(changes=0)
    assert not limit.passed(changes=3)
    clock.now += 4.9
    assert not limit.passed(changes=9)
    clock.now += 0.1
    assert limit.passed(changes=9)
    assert not limit.in_vain


def test_an_answer_that_does_not_come_is_not_waited_for_forever() -> None:
    clock = Clock()
    limit = TimeLimit(5, patience=60, clock=clock)
    assert not limit.passed(changes=0)
    clock.now += 60
    assert limit.passed(changes=0)
    assert limit.in_vain
    assert not TimeLimit(None, clock=clock).passed(changes=0)
