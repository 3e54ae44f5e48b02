"""Intervals in the columns of Spark's sources and sinks."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import sash
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import Batch
from sash.spark.sinks.kafka import messages
from sash.testing import replay

pytestmark = pytest.mark.spark

COLUMNS = """
SELECT timestamp_seconds(id) AS ts, CAST(id % 2 AS INT) AS k,
    make_dt_interval(0, CAST(id AS INT)) AS d, CAST(make_dt_interval(CAST(id AS INT)) AS INTERVAL DAY) AS days,
    make_ym_interval(0, CAST(id AS INT)) AS m, array(make_ym_interval(CAST(id AS INT))) AS years
FROM range(1, 4)
"""
QUERY = """
SELECT k, SUM(d) AS d, MAX(days) AS days, SUM(m) AS m, MAX(years) AS years, COUNT(*) AS n
FROM s [RANGE 10 SECONDS] GROUP BY k
"""


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> DataFrame:
    spark.sql(COLUMNS).coalesce(1).write.parquet(str(tmp_path / "in"))
    return spark.readStream.schema(spark.sql(COLUMNS).schema).parquet(str(tmp_path / "in"))


def test_intervals_of_a_source_reach_sinks_with_their_types(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    engine = sash.Engine(spark)
    engine.stream("s", source)
    query = engine.sql(QUERY)
    assert [str(column) for column in query.schema][1:5] == [
        "d INTERVAL DAY TO SECOND",
        "days INTERVAL DAY",
        "m INTERVAL YEAR TO MONTH",
        "years ARRAY<INTERVAL YEAR TO MONTH>",
    ]
    log = str(tmp_path / "log")
    query.start("changelog", trigger="available_now", path=log, checkpoint=str(tmp_path / "c")).await_termination()
    written = spark.read.parquet(log).where("_op = '+' AND k = 1")
    types = {field.name: field.dataType.simpleString() for field in written.schema.fields}
    assert (types["days"], types["m"]) == ("interval day", "interval year to month")
    shown = written.selectExpr("CAST(d AS STRING)", "CAST(days AS STRING)", "CAST(m AS STRING)").collect()
    assert tuple(shown[0]) == (
        "INTERVAL '0 01:00:00' DAY TO SECOND",
        "INTERVAL '1' DAY",
        "INTERVAL '0-1' YEAR TO MONTH",
    )


ROWS = [{"ts": at, "k": at % 2, "d": timedelta(hours=at), "m": at} for at in range(1, 6)]
SCHEMA = {"s": "ts BIGINT, k INT, d INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT d, m, CAST(d AS STRING) AS a, d * 2 AS b, d / 7 AS c, m + INTERVAL 1 YEAR AS e FROM s [RANGE 3 SECONDS]",
        "SELECT k, SUM(d) AS d, AVG(m) AS m, COLLECT_LIST(d) AS all FROM s [RANGE 3 SECONDS] GROUP BY k",
        "SELECT extract(HOUR FROM d) AS h, extract(SECOND FROM d) AS s, make_dt_interval(k) AS x FROM s [RANGE 3 SECONDS]",
    ],
)
def test_differential_intervals_on_spark_and_locally(sql: str) -> None:
    def changes(**options: Any) -> list[str]:
        result = replay(sql, {"s": ROWS}, unit="s", batch=2, schemas=SCHEMA, **options)
        return sorted(repr((change.ts, change.op, change.row)) for change in result.changes)

    assert changes(runtime="spark") == changes()


def test_messages_of_kafka_have_intervals_as_spark_writes_them(spark: SparkSession) -> None:
    result = replay("SELECT k, d, m, array(d) AS l FROM s [RANGE 3 SECONDS]", {"s": ROWS[:1]}, unit="s", schemas=SCHEMA)
    table = result.to_arrow().select(["_op", "_ts", "k", "d", "m", "l"])
    from sash.plan.types import BIGINT

    batch = Batch.of_table(table, result.schema, BIGINT, spark)
    output = OutputSpec(result.schema, BIGINT, "changes", None, "one")
    values = [json.loads(row["value"]) for row in messages(batch.frame, output, 0).collect()]
    assert values[0]["d"] == "INTERVAL '0 01:00:00' DAY TO SECOND"
    assert values[0]["m"] == "INTERVAL '0-1' YEAR TO MONTH"
    assert values[0]["l"] == ["INTERVAL '0 01:00:00' DAY TO SECOND"]
    assert batch.table.column("m").to_pylist() == [1, 1]
