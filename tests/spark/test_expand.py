"""Rows that become several, and constant relations, on Spark: in scatter, in stages, and as tables that are looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.errors import UnsupportedSqlError
from sash.testing import replay_job
from tests.spark.files import FolderSink

pytestmark = pytest.mark.spark

ROWS = [{"ts": ts, "k": ts % 3, "g": "ab"[ts % 2], "v": ts} for ts in range(1, 9)]

FIXED = [{"k": 0, "p": 5}, {"k": 1, "p": 6}, {"k": 1, "p": 7}]

QUERIES = {
    "expanded": """
WITH totals AS (SELECT k, g, SUM(v) AS t, GROUPING_ID() AS i FROM s [RANGE 4 SECONDS] GROUP BY ROLLUP (k, g))
SELECT n.name, t.g, t.t FROM totals AS t JOIN VALUES (0, 'none'), (1, 'one'), (3, 'three') AS n (i, name) ON t.i = n.i
UNION ALL
SELECT what, NULL, x FROM (SELECT k, v FROM s [RANGE 2 SECONDS]) UNPIVOT (x FOR what IN (k, v))
UNION ALL
SELECT 'constant', NULL, 7
""",
    "values": "VALUES (1, 'a'), (2, 'b')",
    "fixed": "SELECT k, SUM(p) AS t FROM f GROUP BY k",
    "fixed, in two stages": "SELECT t, COUNT(*) AS n FROM (SELECT k, SUM(p) AS t FROM f GROUP BY k) GROUP BY t",
    "nothing": "SELECT COUNT(*) AS n FROM f WHERE p > 100",
    "beside": "SELECT k, v FROM s [RANGE 3 SECONDS] UNION ALL SELECT k, MAX(p) FROM f GROUP BY k",
    "beside a count": "SELECT v FROM s [RANGE 3 SECONDS] UNION ALL SELECT COUNT(*) FROM VALUES (1), (1) AS v (x)",
    "crossed": (
        "SELECT a.n, b.c FROM (SELECT COUNT(*) AS n FROM s [RANGE 3 SECONDS]) AS a CROSS JOIN (SELECT COUNT(*) AS c FROM f) AS b"
    ),
    "compared": "SELECT v FROM s [RANGE 5 SECONDS] WHERE v > (SELECT MAX(p) - 2 FROM f)",
    "joined": (
        "SELECT s.k FROM s [RANGE 5 SECONDS] JOIN (SELECT DISTINCT x FROM VALUES (1), (1) AS v (x)) AS t ON s.k = t.x"
    ),
    "outer": (
        "SELECT t.k, t.m, a.n FROM (SELECT k, MAX(p) AS m FROM f GROUP BY k) AS t "
        "LEFT JOIN (SELECT k, COUNT(*) AS n FROM s [RANGE 3 SECONDS] GROUP BY k) AS a ON a.k = t.k"
    ),
}


def test_a_job_on_spark_makes_the_changes_of_the_local_runtime() -> None:
    """Constants alone, too: no stream starts their stages."""
    strategies = ["auto", "negative-tuple", "piggyback"]
    queries = [(name, sql, {"strategy": strategies[n % 3]}) for n, (name, sql) in enumerate(QUERIES.items())]
    given = {"relations": {"f": FIXED}, "unit": "s", "batch": 3}
    local = replay_job(queries, {"s": ROWS}, **given)
    spark = replay_job(queries, {"s": ROWS}, runtime="spark", **given)
    for name in QUERIES:
        assert changes(spark[name]) == changes(local[name]), name
    assert [change[1:] for change in changes(local["values"])] == [("+", 0, 1, "a"), ("+", 0, 2, "b")]


def changes(result: Any) -> list[tuple[Any, ...]]:
    return sorted(((change.batch, change.op, change.ts, *change.row.values()) for change in result.changes), key=str)


def test_a_query_over_constants_alone_answers_once(spark: SparkSession, tmp_path: Path) -> None:
    sql = "SELECT k, SUM(p) AS t FROM VALUES (0, 5), (1, 6), (1, 7) AS f (k, p) GROUP BY k"
    with Engine(spark, shards=2) as engine:
        query = engine.sql(sql)
        for _ in range(2):
            query.start(
                FolderSink(tmp_path / "out"), trigger="available_now", checkpoint=tmp_path / "c"
            ).await_termination()
        with pytest.raises(UnsupportedSqlError, match=r"start\(\)"):
            query.changes(configure=False)
    assert FolderSink(tmp_path / "out").read() == {("+", 0, 0, 5): 1, ("+", 0, 1, 13): 1}
