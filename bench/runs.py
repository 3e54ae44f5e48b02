"""Timed runs of streaming queries over files: in Sash, and Spark's limit."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from bench.data import SCHEMA
from sash.cli.catalog import declared_catalog
from sash.engine import Engine
from sash.plan.options import check_strategy
from sash.planning import plan_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Timing:
    """The time of every batch in seconds, and the moment at which each started, from the first on."""

    seconds: tuple[float, ...]
    starts: tuple[float, ...] = ()

    def steady(self, skipped: int) -> tuple[float, ...]:
        """The batches after those that start up and fill the window."""
        return self.seconds[skipped:]


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary directory."""
    directory = Path(tempfile.mkdtemp(prefix="sash-bench-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def in_own_process(function: Callable[_Given, _Made], *given: _Given.args, **named: _Given.kwargs) -> _Made:
    """What the function returns in a new process, which has a Java of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *given, **named).result()


def file_stream(spark: SparkSession, directory: Path) -> DataFrame:
    """The files of a directory as a stream, one per batch, oldest first."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(directory))


def run_limit(spark: SparkSession, sql: str, streams: Mapping[str, Path], relations: Mapping[str, DataFrame]) -> Timing:
    """Run only Spark's scan, filters and joins with tables, and the transfer to Python and back."""
    for name, directory in streams.items():
        file_stream(spark, directory).createOrReplaceTempView(name)
    for name, frame in relations.items():
        frame.createOrReplaceTempView(name)
    frame = spark.sql(sql)
    with _other_workers(spark):
        through_python = frame.mapInArrow(lambda batches: batches, frame.schema)
    return run_frame(through_python)


@contextmanager
def _other_workers(spark: SparkSession) -> Iterator[None]:
    """Run functions that are created here in separate Python workers, which have not loaded Sash."""
    environment = spark.sparkContext.environment
    environment["SASH_BENCH"] = "limit"
    try:
        yield
    finally:
        del environment["SASH_BENCH"]


def run_frame(frame: DataFrame) -> Timing:
    """Run a streaming DataFrame into the noop sink until all files are processed."""
    from sash.spark.session import default_shards, query_settings

    spark = frame.sparkSession
    with scratch() as checkpoint, query_settings(spark, default_shards(spark), str(checkpoint)):
        query = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
        try:
            query.processAllAvailable()
            return timing(query)
        finally:
            query.stop()


def timing(query: StreamingQuery) -> Timing:
    """The time of each batch of a query, from its trigger to its commit."""
    batches: dict[int, tuple[float, float]] = {}
    for progress in query.recentProgress:
        report: Any = progress
        if report["numInputRows"] > 0:
            start = datetime.fromisoformat(report["timestamp"]).timestamp()
            batches[report["batchId"]] = (report["durationMs"]["triggerExecution"] / 1000, start)
    seconds, starts = zip(*(batches[number] for number in sorted(batches)), strict=True) if batches else ((), ())
    return Timing(seconds, starts)


def run_sash(
    spark: SparkSession,
    sql: str,
    streams: Mapping[str, Path],
    relations: Mapping[str, DataFrame],
    disable: Collection[str] = (),
    strategy: str = "auto",
) -> Timing:
    """Run the query in Sash, with every change sent to the noop sink; `disable` names optimizer rules to leave out."""
    engine = Engine(spark)
    for name, directory in streams.items():
        engine.stream(name, file_stream(spark, directory))
    for name, frame in relations.items():
        engine.relation(name, frame)
    query = engine.sql(sql, strategy=check_strategy(strategy))
    if disable:
        catalog = declared_catalog([f"{name}({SCHEMA})" for name in streams], [])
        query = replace(query, planned=plan_query(sql, catalog, disable, engine.shards))
    running = query.start("noop", mode="changes")
    try:
        running.process_all()
        return timing(running.query)
    finally:
        running.stop()
