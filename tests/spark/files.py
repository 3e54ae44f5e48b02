"""Fixtures of the Spark tests: streams of files, one per micro-batch, and an idempotent sink."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from sash.engine import Engine
from sash.testing import replay

Rows = list[dict[str, Any]]
ROWS_PER_BATCH = 40
SQL = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 60 MILLISECONDS] WHERE v > 2 GROUP BY k"
TWO_STAGES = (
    "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 60 MILLISECONDS] GROUP BY k) GROUP BY n"
)

COUNT_WINDOWS = (
    "SELECT a.k, a.v, b.v AS w FROM s [ROWS 30] AS a JOIN s [PARTITION BY k ROWS 2] AS b ON a.k = b.k WHERE a.v > 2"
)


def made_up_rows(batches: int, seed: int = 0) -> Rows:
    """Rows at every 500 microseconds or so."""
    rnd = random.Random(seed)
    return [
        {"ts": number * 500 + rnd.randint(0, 1), "k": f"k{rnd.randint(0, 9)}", "v": rnd.randint(0, 9)}
        for number in range(batches * ROWS_PER_BATCH)
    ]


def write_batch(directory: Path, number: int, rows: Rows) -> None:
    """Write the rows of a micro-batch as a file, which Spark reads in the order of the numbers."""
    directory.mkdir(parents=True, exist_ok=True)
    columns = {
        "ts": pa.array([row["ts"] for row in rows], pa.int64()),
        "k": pa.array([row["k"] for row in rows], pa.string()),
        "v": pa.array([row["v"] for row in rows], pa.int64()),
    }
    draft = directory / f".{number}"
    pq.write_table(pa.table(columns), draft)
    os.utime(draft, (10**9 + number, 10**9 + number))
    draft.replace(directory / f"{number}.parquet")


def batches_of(rows: Rows) -> list[Rows]:
    return [rows[start : start + ROWS_PER_BATCH] for start in range(0, len(rows), ROWS_PER_BATCH)]


def file_engine(spark: SparkSession, directory: Path, **options: Any) -> Engine:
    """An engine whose stream `s` reads the files of the directory, one per micro-batch."""
    directory.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema("ts long, k string, v long")
    files = reader.option("maxFilesPerTrigger", 1).option("maxFileAge", "36500d").parquet(str(directory))
    engine = Engine(spark, shards=2)
    engine.stream("s", files, **options)
    return engine


class FolderSink:
    """Writes every batch to a file named by its number, so that a repeated batch replaces its file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def __call__(self, batch: DataFrame, number: int) -> None:
        draft = self.directory / f".{number}"
        pq.write_table(batch.toArrow(), draft)
        draft.replace(self.directory / f"{number}.parquet")

    def read(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for path in self.directory.glob("*.parquet"):
            found.update(tuple(row.values()) for row in pq.read_table(path).to_pylist())
        return found


def expected(sql: str, rows: Rows) -> Counter[tuple[Any, ...]]:
    """The changes of a local replay of the same batches, up to the last row's time."""
    last = max(row["ts"] for row in rows)
    result = replay(sql, {"s": rows}, unit="us", until=last - 1, batch=ROWS_PER_BATCH)
    return Counter((change.op, change.ts, *change.row.values()) for change in result.changes)
