from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from sash.spark.stream_counts import add_up, count_late
from sash.spark.stream_watch import StreamWatch, WatchedStream
from sash.time import BEGINNING, SECOND

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * SECOND


def watch(*, heartbeat: bool = False, slack: int = 0) -> StreamWatch:
    return StreamWatch({"sales": WatchedStream(slack, heartbeat)})


def waiting() -> bool:
    return False


def batch(rows: int, arrived: int, late: int = 0, late_by: int = 0, watermark: int = MICROS) -> dict[str, Any]:
    counts = {"rows_in": rows, "arrived": arrived, "late": late, "late_by": late_by, "watermark": watermark}
    return {"streams": {"sales": counts}}


def test_a_silent_stream_is_reported_at_growing_intervals() -> None:
    seen = watch()
    assert seen.look([batch(1, 1)], 100, waiting, NOON) == []
    assert seen.look([], 159, waiting, NOON) == []
    (text,) = seen.look([batch(0, 0)], 160, waiting, NOON)
    assert text.startswith("stream sales has had no rows since 12:00:00 UTC, and without rows its time stands still")
    assert "HEARTBEAT '1 second'" in text
    assert seen.look([], 219, waiting, NOON) == []
    assert len(seen.look([], 220, waiting, NOON)) == 1
    assert seen.look([batch(5, 0)], 221, waiting, NOON) == []
    assert seen.look([], 280, waiting, NOON) == []
    assert len(seen.look([], 281, waiting, NOON)) == 1


def test_a_stream_is_not_silent_while_its_rows_may_be_in_the_current_batch() -> None:
    seen = watch()
    assert seen.look([batch(1, 1)], 100, waiting, NOON) == []
    assert seen.look([], 500, lambda: True, NOON) == []
    assert seen.look([batch(1, 1)], 501, lambda: True, NOON) == []
    assert len(seen.look([batch(0, 0)], 600, lambda: True, NOON)) == 1


def test_a_silent_stream_with_a_heartbeat_needs_no_other() -> None:
    seen = watch(heartbeat=True)
    seen.look([batch(1, 1)], 0, waiting, NOON)
    (text,) = seen.look([], 60, waiting, NOON)
    assert "its heartbeat lets its rows expire meanwhile" in text


def test_a_share_of_late_rows_suggests_a_slack() -> None:
    seen = watch(slack=2 * SECOND)
    (text,) = seen.look([batch(100, 90), batch(100, 110, late=4, late_by=11_300_000)], 0, waiting, NOON)
    assert text == (
        "stream sales: 4 of 200 rows (2.0%) were late and dropped, up to 12 seconds behind the watermark 2026-01-01 12:00:00 "
        "UTC. SLACK '14 seconds' (slack=) would have kept them, for answers that are so much later"
    )
    assert seen.look([batch(100, 100, late=4, late_by=1)], 59, waiting, NOON) == []
    assert "4 of 100 rows" in seen.look([], 60, waiting, NOON)[0]


def test_few_late_rows_are_not_worth_a_warning() -> None:
    assert watch().look([batch(10_000, 10_000, late=9, late_by=1)], 0, waiting, NOON) == []


def test_a_stream_whose_rows_are_all_late_has_another_problem() -> None:
    years = 5 * 365 * 86_400 * SECOND
    (text,) = watch().look(
        [batch(9, 9), batch(9, 9, late=9, late_by=years, watermark=MICROS + years)], 0, waiting, NOON
    )
    assert text.startswith(
        "stream sales: all rows of the last batch were late and dropped, up to 1825 days behind the watermark 2030-12-31 "
    )
    assert text.endswith(
        "If a row with a time in the future moved the watermark, declare MAX JUMP '1 day' (max_jump=) and start with a new checkpoint"
    )
    (text,) = watch().look([batch(9, 9, late=9, late_by=1_500_000)], 0, waiting, NOON)
    assert text.endswith(
        "start with a new checkpoint; if its rows come out of order, declare SLACK '2 seconds' (slack=)"
    )


def test_late_rows_are_counted_against_the_clock_before_the_batch() -> None:
    ts = np.array([10, 50, 40, 60], np.int64)
    assert count_late(ts, 45, 60) == {"arrived": 4, "late": 2, "late_by": 35, "watermark": 60}
    assert count_late(ts, BEGINNING, BEGINNING) == {"arrived": 4, "late": 0, "late_by": 0}
    parts = [
        {"s": {"rows_in": 7}},
        {"s": count_late(ts, 45, 60)},
        {"s": count_late(ts[:1], 45, 50), "t": {"rows_in": 1}},
    ]
    assert add_up(parts) == {
        "s": {"rows_in": 7, "arrived": 5, "late": 3, "late_by": 35, "watermark": 60},
        "t": {"rows_in": 1},
    }
