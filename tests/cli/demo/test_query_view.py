from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sash.cli.demo.queries import DEMO_QUERIES, RELATIONS
from sash.cli.demo.query_view import DemoBoard
from sash.cli.demo.sales import SCHEMA as SALES
from sash.cli.demo.sales import SalesGenerator
from sash.plan.types import BIGINT, DOUBLE, STRING, Field
from sash.testing import replay
from tests.cli.command import sash

AT = [datetime(2026, 1, 1, second=second, tzinfo=UTC) for second in range(10)]
SCHEMA = (Field("name", STRING), Field("sales", BIGINT), Field("total", DOUBLE))


def test_board_applies_changes_and_records_the_plotted_value() -> None:
    board = DemoBoard(DEMO_QUERIES["q4"], SCHEMA)
    board.apply([("+", AT[1], ("eggs", 1, 2.0))])
    board.apply([("+", AT[2], ("eggs", 2, 5.0)), ("-", AT[2], ("eggs", 1, 2.0)), ("+", AT[2], ("figs", 1, 9.0))])
    assert board.answer() == [("eggs", 2, 5.0), ("figs", 1, 9.0)]
    board.apply([("-", AT[5], ("figs", 1, 9.0)), ("-", AT[4], ("eggs", 2, 5.0)), ("+", AT[4], ("eggs", 1, 3.0))])
    assert board.answer() == [("eggs", 1, 3.0)]
    assert [value for _, value in board.steps] == [2.0, 14.0, 12.0, 3.0]
    assert (board.changes, board.batches, board.as_of) == (7, 3, AT[5])


class Batch:
    """A batch of changes, as the sink of a query gets it."""

    def __init__(self, *changes: tuple[Any, ...]) -> None:
        self._changes = changes

    def collect(self) -> tuple[tuple[Any, ...], ...]:
        return self._changes


def test_changes_and_counts_on_the_board_are_of_the_same_batch() -> None:
    board = DemoBoard(DEMO_QUERIES["q4"], SCHEMA)
    board(Batch(("+", AT[1], "eggs", 1, 2.0)), 0)
    board(Batch(("-", AT[2], "eggs", 1, 2.0), ("+", AT[2], "eggs", 2, 5.0)), 1)
    assert (board.answer(), board.value, board.progress) == ([], 0.0, {})
    board.advance({"batch": 0, "expired": 3, "total_rows_in": 10})
    assert (board.answer(), board.value, board.expired) == ([("eggs", 1, 2.0)], 2.0, 3)
    board.advance({"batch": 1, "expired": 4, "total_rows_in": 12})
    assert (board.answer(), board.value, board.expired) == ([("eggs", 2, 5.0)], 5.0, 7)
    assert (board.progress["total_rows_in"], board.batches) == (12, 2)


@pytest.mark.parametrize("name", DEMO_QUERIES)
def test_every_demo_query_can_be_planned_and_runs_empty(name: str) -> None:
    demo = DEMO_QUERIES[name]
    columns = SALES.replace("TIMESTAMP", "BIGINT")
    tables = {
        table: [dict(zip(_names(RELATIONS[table][0]), row, strict=True)) for row in RELATIONS[table][1]]
        for table in demo.relations
    }
    sale = {"ts": 0, "store_id": 2, "item_id": 4, "price": 16.0, "quantity": 1}
    others = {stream: [] if stream == "sales_b" and name == "q5" else [sale] for stream, _ in demo.streams}
    schemas = dict.fromkeys(others, columns) | {table: RELATIONS[table][0] for table in tables}
    result = replay(demo.sql, others, tables, unit="s", schemas=schemas)
    names = [field.name for field in result.schema]
    held = [sum(demo.weight(names, tuple(row.values())) for row in result.at(at)) for at in (5, 10)]
    assert held[0] > 0
    assert held[1] == 0


def _names(columns: str) -> list[str]:
    return [column.split()[0] for column in columns.split(", ")]


def test_sales_are_in_order_of_time(tmp_path: Path) -> None:
    sales = SalesGenerator(tmp_path, rate=200, items=8)._sales()
    times = sales.column("ts").cast("int64").to_numpy()
    assert (times[1:] >= times[:-1]).all()
    assert sales.num_rows == 100
    assert set(sales.column("item_id").to_pylist()) <= set(range(8))


@pytest.mark.spark
@pytest.mark.slow
def test_the_view_of_a_query_ends_by_itself_and_pauses_half_way() -> None:
    done = sash("demo", "--query", "q4", "--plain", "--seconds", "18", "--rate", "50")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert not any("Physical plan" in line for line in lines)
    assert any("rows only expire" in line for line in lines)
    assert any("output delay" in line for line in lines)
    assert "sales arrived" in lines[-1]
    assert "Traceback" not in done.stderr
