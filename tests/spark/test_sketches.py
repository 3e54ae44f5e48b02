"""Spark reads the sketches that Sash writes, and the two agree on the estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sash.operators.scalar import sketches
from sash.testing import replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = [{"ts": ts, "k": ts % 2, "v": ts * 7 % 11, "g": f"g{ts % 5}"} for ts in range(1, 12)]


def test_spark_reads_sketches(spark: SparkSession) -> None:
    """Small sketches, whose estimates are those of Spark's own; and large ones, of another estimator in HLL."""
    for count in (0, 3, 300, 20_000):
        rows = [
            (sketches.hll_of(12, range(count)), sketches.theta_of(9, range(count))),
            (sketches.hll_of(12, map(str, range(count))), sketches.theta_of(9, map(str, range(count)))),
        ]
        (numbers, texts) = spark.createDataFrame(rows, "h BINARY, t BINARY").selectExpr(
            "hll_sketch_estimate(h) AS h", "theta_sketch_estimate(t) AS t"
        ).collect()  # fmt: skip
        own = "hll_sketch_estimate(hll_sketch_agg({0})) AS h, theta_sketch_estimate(theta_sketch_agg({0}, 9)) AS t"
        for found, column in ((numbers, "id"), (texts, "CAST(id AS STRING)")):
            (expected,) = spark.sql(f"SELECT {own.format(column)} FROM range({count})").collect()
            assert found.h == expected.h if count <= 300 else abs(found.h - count) <= 0.05 * count
            assert abs(found.t - expected.t) <= (0 if count <= 300 else 0.1 * count)


def test_sketches_on_spark(spark: SparkSession) -> None:
    """Spark merges its own sketches and those of a query that ran on Spark."""
    result = replay(
        "SELECT k, hll_sketch_agg(v) AS h, theta_sketch_agg(g) AS t, hll_sketch_estimate(hll_sketch_agg(v)) AS n, "
        "count_min_sketch(v, 0.5D, 0.8D, 7) AS c FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k",
        {"s": ROWS},
        schemas={"s": "ts BIGINT, k INT, v INT, g STRING"},
        unit="s",
        until=12,
        runtime="spark",
        batch=6,
    )
    answer = result.to_arrow(at=10)
    spark.createDataFrame(answer).createOrReplaceTempView("sketched")
    spark.createDataFrame(
        [(row["k"], row["v"], row["g"]) for row in ROWS[:10]], "k INT, v INT, g STRING"
    ).createOrReplaceTempView("rows_of_window")
    (difference,) = spark.sql(
        "SELECT COUNT(*) AS n FROM sketched JOIN (SELECT k, hll_sketch_agg(v) AS h, theta_sketch_agg(g) AS t, "
        "count_min_sketch(v, 0.5D, 0.8D, 7) AS c FROM rows_of_window GROUP BY k) AS own USING (k) "
        "WHERE sketched.n = hll_sketch_estimate(hll_union(sketched.h, own.h)) AND sketched.c = own.c "
        "AND theta_sketch_estimate(theta_difference(own.t, sketched.t)) = 0 "
        "AND theta_sketch_estimate(theta_intersection(own.t, sketched.t)) = theta_sketch_estimate(own.t)"
    ).collect()
    assert difference.n == 2
