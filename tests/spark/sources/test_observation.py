"""Streams observed while a query runs, and a query that is planned by the observed statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import sash
from sash.errors import OptionError, StatisticsError
from sash.plan.nodes import Except, Join, walk
from sash.query import Query
from sash.spark.sources.observation import StreamObservation

pytestmark = pytest.mark.spark

SECOND = 1_000_000
SCHEMA = "ts BIGINT, k BIGINT, p STRING"
SQL = (
    "SELECT a.k, c.p FROM a [RANGE 2 SECONDS] JOIN c [RANGE 2 SECONDS] ON a.k = c.k EXCEPT ALL "
    "SELECT b.k, c.p FROM b [RANGE 2 SECONDS] JOIN c [RANGE 2 SECONDS] ON b.k = c.k"
)


def written(spark: SparkSession, folder: Path, name: str, rows: int, step: int) -> DataFrame:
    """Two files of a stream nearly all of whose rows have one key."""
    files = folder / name
    files.mkdir()
    for number in range(2):
        at = range(number * rows, (number + 1) * rows)
        columns: dict[str, Any] = {
            "ts": [step * one for one in at],
            "k": [one if one % 10 == 0 else 7 for one in at],
            "p": [None if one % 4 == 0 else "x" for one in at],
        }
        pq.write_table(pa.table(columns), files / f"{number}.parquet")
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(files))


def top(query: Query) -> type:
    return type(next(node for node in walk(query.planned.optimized) if isinstance(node, Join | Except)))


def test_a_query_is_planned_by_observed_statistics(spark: SparkSession, tmp_path: Path) -> None:
    frames = {
        name: written(spark, tmp_path, name, rows, step)
        for name, rows, step in (("a", 200, SECOND // 20), ("b", 200, SECOND // 20), ("c", 20, SECOND // 2))
    }
    guessed = sash.Engine(spark)
    for name, frame in frames.items():
        guessed.stream(name, frame, rate=2 if name == "c" else 20, distinct={"k": 100_000})
    query = guessed.sql(SQL)
    assert top(query) is Except, "many values, few matches"
    running = query.start("noop", observe=True)
    try:
        running.process_all()
        seen = running.statistics()
    finally:
        running.stop()
    assert seen["a"].rate == pytest.approx(400 / (399 / 20))
    assert seen["a"].peak == pytest.approx(200 / (199 / 20)), "the rate of the faster batch"
    assert seen["c"].peak is None, "batches of few rows do not tell"
    assert seen["a"].distinct["k"] == pytest.approx(41, rel=0.05)
    assert seen["a"].shares("k")[7] == pytest.approx(0.9)
    assert seen["c"].distinct["p"] == pytest.approx(1)
    assert seen["c"].shares("p") == {"x": pytest.approx(0.75)}
    knowing = sash.Engine(spark)
    for name, frame in frames.items():
        knowing.stream(name, frame, statistics=seen[name])
    assert top(knowing.sql(SQL)) is Join, "most rows match"


def test_streams_are_observed_only_on_request(spark: SparkSession, tmp_path: Path) -> None:
    engine = sash.Engine(spark)
    engine.stream("a", written(spark, tmp_path, "a", 2, SECOND))
    query = engine.sql("SELECT x.k FROM a [RANGE 1 SECOND] AS x JOIN a [RANGE 1 SECOND] AS y ON x.k = y.k")
    running = query.start("noop")
    try:
        with pytest.raises(OptionError, match="observe=True"):
            running.statistics()
    finally:
        running.stop()
    with pytest.raises(StatisticsError, match="try again after more rows"):
        StreamObservation([query.planned]).statistics()
    both = query.start("noop", observe=True)
    try:
        both.process_all()
        assert both.statistics()["a"].rate == pytest.approx(4 / 3), "a stream that is read twice counts once"
    finally:
        both.stop()
