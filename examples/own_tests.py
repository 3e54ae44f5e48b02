"""Tests of a query of your own, without Spark and without waiting: `pytest examples/own_tests.py`, or run the file."""

from __future__ import annotations

import pytest

from sash.testing import replay

SILENT = """
SELECT sensor FROM readings [RANGE 1 HOUR]
EXCEPT
SELECT sensor FROM readings [RANGE 1 MINUTE]
"""
READINGS = [{"ts": ts, "sensor": sensor} for ts, sensor in [(0, "a"), (10, "b"), (50, "b"), (65, "a")]]


def test_a_sensor_is_silent_a_minute_after_its_last_reading() -> None:
    """Check the answer at several instants; it changes although no row arrives."""
    result = replay(SILENT, {"readings": READINGS}, unit="s", until=300)
    assert result.at(59) == []
    assert result.at(60) == [{"sensor": "a"}]
    assert result.at(65) == []
    assert result.at(110) == [{"sensor": "b"}]
    assert sorted(row["sensor"] for row in result.at(125)) == ["a", "b"]


def test_every_change_is_emitted_once_and_at_its_time() -> None:
    """Check the exact changes that a sink would receive."""
    result = replay(SILENT, {"readings": READINGS}, unit="s", until=120)
    changes = [(change.ts, change.op, change.row["sensor"]) for change in result.changes]
    assert changes == [(60, "+", "a"), (65, "-", "a"), (110, "+", "b")]


@pytest.mark.parametrize("batch", [1, 2, None])
def test_the_split_into_batches_does_not_matter(batch: int | None) -> None:
    """Compare batches of one row and of two with a single batch."""
    batches = replay(SILENT, {"readings": READINGS}, unit="s", until=300, batch=batch)
    whole = replay(SILENT, {"readings": READINGS}, unit="s", until=300)
    assert batches.changes == whole.changes


def test_rows_may_be_late_by_the_slack() -> None:
    """Rows may arrive late by the slack; rows that are later are dropped and counted."""
    rows = [{"ts": 0, "sensor": "a"}, {"ts": 8, "sensor": "b"}, {"ts": 5, "sensor": "c"}, {"ts": 1, "sensor": "d"}]
    result = replay("SELECT sensor FROM r [RANGE 1 MINUTE]", {"r": rows}, unit="s", until=20, batch=1, slack=4)
    assert [row["sensor"] for row in result.at(20)] == ["a", "c", "b"]
    assert result.late == 1


if __name__ == "__main__":
    raise SystemExit(pytest.main(["-q", __file__]))
