from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sash.cli.demo import Board
from sash.cli.shop import Shop
from tests.cli.command import sash

AT = [datetime(2026, 1, 1, second=second, tzinfo=UTC) for second in range(10)]


def test_board_folds_changes_and_counts_rows() -> None:
    board = Board()
    board.apply([("+", AT[1], 7, 1, 2.0)])
    board.apply([("+", AT[2], 7, 2, 5.0), ("-", AT[2], 7, 1, 2.0), ("+", AT[2], 8, 1, 9.0)])
    assert board.answer == {7: (2, 5.0), 8: (1, 9.0)}
    assert (board.entered, board.expired, board.live, board.changes, board.batches) == (3, 0, 3, 4, 2)
    board.apply([("-", AT[5], 8, 1, 9.0), ("-", AT[4], 7, 2, 5.0), ("+", AT[4], 7, 1, 3.0)])
    assert board.answer == {7: (1, 3.0)}
    assert (board.entered, board.expired, board.live) == (3, 2, 1)
    assert board.as_of == AT[5]


def test_shop_sells_in_order_of_time(tmp_path: Path) -> None:
    sales = Shop(tmp_path, rate=200, items=8)._sales()
    times = sales.column("ts").cast("int64").to_numpy()
    assert (times[1:] >= times[:-1]).all()
    assert sales.num_rows == 100
    assert set(sales.column("item_id").to_pylist()) <= set(range(8))


@pytest.mark.spark
@pytest.mark.slow
def test_demo_ends_by_itself_and_its_window_runs_empty() -> None:
    done = sash("demo", "--plain", "--seconds", "30", "--rate", "50")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any("rows only expire" in line for line in lines)
    assert "sales entered the window" in lines[-1]
    assert "Traceback" not in done.stderr
