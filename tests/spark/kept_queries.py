"""Queries whose checkpoints are kept: one per way in which state is stored, and what runs them batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sash.engine import Engine
from tests.spark.files import (
    COUNT_WINDOWS,
    SQL,
    TWO_STAGES,
    FolderSink,
    batches_of,
    file_engine,
    made_up_rows,
    write_batch,
)

BEFORE, AFTER = 3, 3
"""The number of batches before the checkpoint was kept, and of those that go on from it."""


@dataclass(frozen=True)
class Kept:
    """A query, and how it is started."""

    sql: str
    strategy: str = "auto"


QUERIES = {
    "group_by": Kept(SQL),
    "two_stages": Kept(TWO_STAGES),
    "count_windows": Kept(COUNT_WINDOWS),
    "shared_rows": Kept(
        "SELECT a.v AS v, b.v AS w FROM (SELECT DISTINCT k, v FROM s [RANGE 40 MILLISECONDS]) AS a "
        "JOIN (SELECT DISTINCT k, v FROM s [RANGE 20 MILLISECONDS]) AS b ON a.k = b.k"
    ),
    "negation_below_join": Kept(
        "SELECT a.k AS k, a.v AS v, c.v AS w FROM s [RANGE 50 MILLISECONDS] AS a "
        "LEFT ANTI JOIN (SELECT k, v FROM s [RANGE 10 MILLISECONDS] WHERE v > 7) AS b ON a.k = b.k "
        "JOIN s [RANGE 20 MILLISECONDS] AS c ON a.k = c.k"
    ),
    "multi_join": Kept(
        "SELECT a.v AS x, b.v AS y, c.v AS z FROM s [RANGE 9 MILLISECONDS] AS a, s [RANGE 5 MILLISECONDS] AS b, "
        "s [RANGE 7 MILLISECONDS] AS c WHERE a.k = b.k AND b.k = c.k"
    ),
    "unbounded": Kept("SELECT DISTINCT k, v FROM s [RANGE UNBOUNDED]"),
    "relation": Kept("SELECT s.v AS v, t.w AS w FROM s [RANGE 30 MILLISECONDS] JOIN t ON s.k = t.k"),
    "non_retroactive": Kept("SELECT s.v AS v, n.w AS w FROM s [RANGE 30 MILLISECONDS] JOIN n ON s.k = n.k"),
    "input_triggered": Kept("SELECT k, COUNT(*) AS n FROM s [RANGE 30 MILLISECONDS] GROUP BY k", "input-triggered"),
    "piggyback": Kept(
        "SELECT DISTINCT a.k, b.v FROM s [RANGE 30 MILLISECONDS] AS a JOIN s [RANGE 9 MILLISECONDS] AS b ON a.k = b.k",
        "piggyback",
    ),
}


def write_rows(folder: Path, numbers: range) -> None:
    """The files of these batches, and updates of the relations in one out of two."""
    rows = batches_of(made_up_rows(BEFORE + AFTER))
    for number in numbers:
        write_batch(folder / "s", number, rows[number])
        updates = [{"ts": row["ts"], "k": row["k"], "v": row["v"]} for row in rows[number][:: 7 + number % 2]]
        last = {row["k"]: row for row in updates}
        write_batch(folder / "updates", number, list(last.values()))


def engine_of(spark: SparkSession, folder: Path) -> Engine:
    """An engine with the stream `s`, a relation `t` and a non-retroactive relation `n`, one file per batch of each."""
    engine = file_engine(spark, folder / "s")
    reader = spark.readStream.schema("ts long, k string, v long")
    for name, retroactive in (("t", True), ("n", False)):
        files = reader.option("maxFilesPerTrigger", 1).option("maxFileAge", "36500d").parquet(str(folder / "updates"))
        engine.relation(
            name, files.withColumnRenamed("v", "w"), key="k", retroactive=retroactive, changes=True, time="ts"
        )
    return engine


def run_query(spark: SparkSession, folder: Path, name: str, checkpoint: Path, sink: FolderSink) -> dict[str, Any]:
    """Run a query over the files that there are, and return its progress."""
    kept = QUERIES[name]
    query = engine_of(spark, folder).sql(kept.sql, strategy=kept.strategy)
    running = query.start(sink, trigger="available_now", checkpoint=str(checkpoint))
    running.await_termination()
    progress: dict[str, Any] = running.progress()
    running.stop()
    return progress
