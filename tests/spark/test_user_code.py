"""Python functions and aggregates on Spark's workers: in legs, above operators, in jobs, and after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash import CheckpointError, Engine
from sash.testing import replay_job

pytestmark = pytest.mark.spark

ROWS = [{"ts": n, "k": n % 3, "v": n * n % 7} for n in range(40)]


def test_queries_of_a_job_run_them_on_workers() -> None:
    offset = 3  # a closure, which plain pickle cannot send

    class Product:
        def init(self) -> int:
            return offset

        def add(self, state: int, values: pa.Array) -> int:
            for value in values.to_pylist():
                state = state * 31 + value
            return state % 1009

        def result(self, state: int) -> int:
            return state

    def shifted(values: pa.Array) -> pa.Array:
        return pc.add(values, offset)

    queries = {
        "leg": "SELECT ts, shifted(v) AS a FROM s [RANGE 5 SECONDS] WHERE shifted(k) > 3",
        "above": "SELECT k, shifted(SUM(v)) AS a, product(v) AS b FROM s [RANGE 5 SECONDS] GROUP BY k",
    }
    given: dict[str, Any] = {
        "functions": {"shifted": (shifted, "BIGINT")},
        "aggregates": {"product": (Product, "BIGINT")},
        "unit": "s",
        "batch": 15,
    }
    spark = replay_job(queries, {"s": ROWS}, runtime="spark", **given)
    local = replay_job(queries, {"s": ROWS}, **given)
    for name in queries:
        for ts in range(0, 44, 3):
            assert sorted(map(str, spark[name].at(ts))) == sorted(map(str, local[name].at(ts))), (name, ts)


@pytest.fixture
def of_spark(spark: SparkSession) -> Iterator[str]:
    """A function of the session, which other tests share."""
    spark.udf.register("of_spark", lambda value: value * 10, "bigint")
    yield "of_spark"
    spark.sql("DROP TEMPORARY FUNCTION of_spark")


def test_a_checkpoint_belongs_to_a_version(spark: SparkSession, tmp_path: Path, of_spark: str) -> None:
    source = str(tmp_path / "in")
    spark.createDataFrame([(1_000_000, 2), (2_000_000, 3), (3_000_000, 9)], "ts BIGINT, v BIGINT").write.parquet(source)
    seen: list[Any] = []

    def keep(batch: DataFrame, number: int) -> None:
        seen.extend(batch.collect())

    def start(version: str) -> Any:
        engine = Engine(spark, checkpoint=str(tmp_path / "checkpoint"), shards=1)
        engine.stream("numbers", spark.readStream.schema("ts BIGINT, v BIGINT").parquet(source))
        engine.function("halved", lambda values: pc.divide(values, 2), "BIGINT", version=version)
        query = engine.sql(f"SELECT halved(v) AS a FROM (SELECT {of_spark}(v) AS v FROM numbers [RANGE 1 HOUR]) AS n")
        return query.start(keep, name="kept", trigger="available_now")

    start("1").await_termination()
    assert sorted(row["a"] for row in seen if row["_op"] == "+") == [10, 15]
    with pytest.raises(CheckpointError, match="has another version"):
        start("2")
