"""Rows that become several, and constant relations, on Spark: in scatter, in stages, and as tables that are looked up."""

from __future__ import annotations

from typing import Any

import pytest

from sash.errors import UnsupportedSqlError
from sash.testing import replay

pytestmark = pytest.mark.spark

ROWS = [{"ts": ts, "k": ts % 3, "g": "ab"[ts % 2], "v": ts} for ts in range(1, 9)]

QUERY = """
WITH totals AS (SELECT k, g, SUM(v) AS t, GROUPING_ID() AS i FROM s [RANGE 4 SECONDS] GROUP BY ROLLUP (k, g))
SELECT n.name, t.g, t.t FROM totals AS t JOIN VALUES (0, 'none'), (1, 'one'), (3, 'three') AS n (i, name) ON t.i = n.i
UNION ALL
SELECT what, NULL, x FROM (SELECT k, v FROM s [RANGE 2 SECONDS]) UNPIVOT (x FOR what IN (k, v))
UNION ALL
SELECT 'constant', NULL, 7
"""


def answers(runtime: str) -> list[list[tuple[Any, ...]]]:
    result = replay(QUERY, {"s": ROWS}, unit="s", batch=3, runtime=runtime)
    return [sorted((tuple(row.values()) for row in result.at(at)), key=str) for at in range(14)]


def test_spark_gives_the_answers_of_the_local_runtime() -> None:
    assert answers("spark") == answers("local")


def test_a_query_without_a_stream_is_refused() -> None:
    with pytest.raises(UnsupportedSqlError, match="reads no stream"):
        replay("VALUES (1), (2)", {}, runtime="spark")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.k FROM s [RANGE 5 SECONDS] JOIN (SELECT DISTINCT x FROM VALUES (1), (1) AS v (x)) AS t ON s.k = t.x",
        "SELECT k FROM s [RANGE 5 SECONDS] UNION ALL SELECT COUNT(*) AS k FROM VALUES (1), (1) AS v (x)",
    ],
)
def test_a_stage_over_constants_alone_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="only constants and relations that never change"):
        replay(sql, {"s": ROWS}, unit="s", runtime="spark")
