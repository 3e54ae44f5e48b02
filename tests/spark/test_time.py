"""Windows of time, sessions, NOW() and interval joins on Spark: the changes are those of the local runtime."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from sash.testing import replay, replay_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMAS = {"a": "ts TIMESTAMP, k INT, v INT", "b": "ts TIMESTAMP_NTZ, k INT, v INT"}
SESSIONS = (
    "SELECT k, unix_seconds(session_window.start) AS a, unix_seconds(session_window.end) AS b, COUNT(*) AS n FROM a "
    "GROUP BY k, session_window(ts, CASE v % 4 WHEN 0 THEN '6 seconds' WHEN 1 THEN '0 seconds' WHEN 2 THEN NULL ELSE '2 seconds' END)"
)
"""Each row has a gap of its own."""
QUERIES = {
    "tumble": "SELECT window.start, window.end, k, SUM(v) AS t FROM a GROUP BY window(ts, '10 seconds', '10 seconds', '3 seconds'), k",
    "tumble_without_a_zone": "SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL 7 SECONDS) GROUP BY window_end",
    "hop": "SELECT window_start, COUNT(*) AS n FROM HOP(TABLE a, DESCRIPTOR(ts), INTERVAL 4 SECONDS, INTERVAL 12 SECONDS) GROUP BY window_start",
    "interval_join": "SELECT a.v, c.v AS w FROM a JOIN a AS c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS",
    "now": "SELECT k, COUNT(*) AS n FROM a WHERE ts + INTERVAL 5 SECONDS <= NOW() AND ts > NOW() - INTERVAL 20 SECONDS GROUP BY k",
    "gaps_of_rows": f"{SESSIONS} EMIT ON WINDOW CLOSE",
    "sessions": "SELECT k, session_window.start, COUNT(*) AS n FROM a GROUP BY k, session_window(ts, '4 seconds')",
}


def rows(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    times = sorted(rng.randrange(90) for _ in range(60))
    return [{"ts": ts, "k": rng.randrange(3), "v": number} for number, ts in enumerate(times)]


def folded(result: Any, instant: int) -> list[str]:
    return sorted(map(repr, result.at(instant)))


def test_partitions_out_of_step() -> None:
    """Rows that a filter refuses, or that a table does not have, count for the clock of their partition, too."""
    sql = "SELECT a.k, COUNT(*) AS n FROM a [RANGE 20 SECONDS] JOIN r ON a.k = r.k WHERE v % 3 > 0 GROUP BY a.k"
    arriving = [
        row for pair in zip(rows(1), ({**r, "ts": r["ts"] + 900} for r in rows(2)), strict=True) for row in pair
    ]
    given: dict[str, Any] = {"unit": "s", "relations": {"r": [{"k": 0}, {"k": 2}]}, "until": 1_200}
    sides = [{**row, "p": str(number % 2)} for number, row in enumerate(arriving)]
    spark = replay(sql, {"a": sides}, runtime="spark", partition_by={"a": "p"}, batch=30, **given)
    assert spark.late == 0
    whole = replay(sql, {"a": sorted(sides, key=lambda row: row["ts"])}, **given)
    assert sorted((c.ts, c.op, repr(c.row)) for c in spark.changes) == sorted(
        (c.ts, c.op, repr(c.row)) for c in whole.changes
    )


def test_sessions_whose_rows_have_gaps_of_their_own(spark: SparkSession) -> None:
    """Those that have been emitted in the end are those that Spark finds in batch."""
    given = rows(3)
    given += [{"ts": row["ts"] + 6, "k": row["k"], "v": 3} for row in given if row["v"] % 4 == 0]
    given.sort(key=lambda row: row["ts"])
    emitted = replay(
        f"{SESSIONS} EMIT ON WINDOW CLOSE", {"a": given}, schemas={"a": SCHEMAS["a"]}, unit="s", until=200
    ).at(200)
    moments = [{**row, "ts": datetime.fromtimestamp(row["ts"], UTC)} for row in given]
    session = spark.newSession()
    session.createDataFrame(moments, SCHEMAS["a"]).createOrReplaceTempView("a")
    assert sorted(map(repr, emitted)) == sorted(repr(row.asDict()) for row in session.sql(SESSIONS).collect())


def test_same_answers_as_locally() -> None:
    streams = {"a": rows(1), "b": rows(1)}
    given: dict[str, Any] = {"unit": "s", "schemas": SCHEMAS, "batch": 50, "until": 120}
    local, spark = (replay_job(QUERIES, streams, runtime=runtime, **given) for runtime in ("local", "spark"))
    for name in QUERIES:
        for instant in range(0, 121, 3):
            assert folded(spark[name], instant) == folded(local[name], instant), (name, instant)
