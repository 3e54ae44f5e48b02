"""Long chains of operators and of UNIONs on Spark: in legs, which Spark evaluates, and in shards, to which they are sent."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sash.testing import replay

pytestmark = pytest.mark.spark

ROWS = [{"ts": 1, "k": 1, "x": "a"}, {"ts": 2, "k": 3, "x": "b"}]


def total(column: str, count: int = 300) -> str:
    return " + ".join([column] * count)


def test_long_queries_run_on_spark(spark: SparkSession) -> None:
    some = " OR ".join(f"(k = {i} AND x = 'b')" for i in range(500))
    unions = " UNION ".join(f"SELECT k + {i % 3} AS r FROM s [ROWS 5]" for i in range(50))
    sql = (
        f"SELECT {total('k')} AS a, {total('n')} AS b, {'- ' * 300}n AS c FROM "
        f"(SELECT k, count(*) AS n FROM s [ROWS 5] WHERE {some} AND {total('k')} > 5 GROUP BY k)"
    )
    for text in (sql, unions):
        local, there = (replay(text, {"s": ROWS}, runtime=runtime) for runtime in ("local", "spark"))
        assert len(local.at(2)) > 0
        assert sorted(map(str, there.at(2))) == sorted(map(str, local.at(2)))
