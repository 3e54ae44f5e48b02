"""Window stores on Spark: the batch functions that fill a store, and scans of sub-windows as Spark jobs.

Each micro-batch is collected to the driver as Arrow, and the store's writer applies it under its number. A batch that
Spark repeats after a failure is not applied twice, because the query's checkpoint is inside the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from sash.errors import BadRowError
from sash.plan.catalog import StreamEntry
from sash.spark.errors import sash_errors
from sash.spark.legs import micros
from sash.spark.rejected import BATCH_MICROS
from sash.spark.scatter import TIME
from sash.spark.session import in_pool, pool_of
from sash.spark.sinks.batch import Batch
from sash.spark.sources.inputs import StreamSource, heartbeats
from sash.sql.render import quoted
from sash.time import BEGINNING, FOREVER
from sash.window_store.store.layout import ENDS
from sash.window_store.store.manifest import Slice
from sash.window_store.store.sets import WindowSets
from sash.window_store.sub_windows import Scan, scan_locally
from sash.window_store.summaries.base import Tables
from sash.window_store.summaries.core import Core

_BEAT = "_beat"


def kept_frame(source: StreamSource, entry: StreamEntry) -> DataFrame:
    """A stream's rows with their times in microseconds. Heartbeats, if it has any, are rows marked by a column."""
    dtype = next(field.dtype for field in entry.schema if field.name == entry.time)
    moment = quoted(source.time) if source.time is not None else micros(quoted(entry.time), dtype)
    names = [quoted(field.name) for field in entry.schema]
    rows = source.frame.selectExpr(f"{moment} AS {TIME}", *names)
    if source.max_jump is not None:
        rows = rows.where(f"{TIME} IS NULL OR {TIME} <= {BATCH_MICROS} + {source.max_jump}")
    if source.heartbeat is None:
        return rows
    beats = heartbeats(source).selectExpr(TIME, *(f"NULL AS {name}" for name in names), f"true AS {_BEAT}")
    return rows.selectExpr("*", f"false AS {_BEAT}").unionAll(beats)


@dataclass(frozen=True)
class ApplyRows:
    """Applies each micro-batch of a stream to a store."""

    writer: WindowSets
    source: StreamSource

    def __call__(self, batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        layout = self.writer.layout
        if table.column(TIME).null_count:
            if not self.source.drop_bad_rows:
                raise BadRowError(
                    f"stream {layout.name} has a row whose time column is NULL: give it a time, or register the stream "
                    'with bad_rows="drop"'
                )
            table = table.filter(pc.is_valid(table.column(TIME)))
        high = pc.max(table.column(TIME)).as_py()
        clock = BEGINNING if high is None else high - self.source.slack
        if _BEAT in table.schema.names:
            table = table.filter(pc.invert(table.column(_BEAT)))
        self.writer.apply(number, table.select(layout.arrow.names).cast(layout.arrow), clock)


@dataclass(frozen=True)
class ApplyInsertions:
    """Applies each batch of a query that selects all rows of a stream, in a job, to a store."""

    writer: WindowSets

    def __call__(self, batch: Batch, number: int) -> None:
        layout, table = self.writer.layout, batch.table
        moment = table.column("_ts").cast(pa.int64())
        columns = [table.column(field.name) for field in layout.schema]
        rows = pa.table([moment, *columns], names=layout.arrow.names).cast(layout.arrow)
        self.writer.apply(number, rows, _clock_of(batch, moment))


def _clock_of(batch: Batch, moment: pa.ChunkedArray) -> int:
    """The clock of the query, where it is known; otherwise the time of the last change, since they are ordered by time."""
    if batch.clock is not None and BEGINNING < batch.clock < FOREVER:
        return batch.clock
    high = pc.max(moment).as_py()
    return BEGINNING if high is None else int(high)


@dataclass(frozen=True)
class ApplyChanges:
    """Applies each batch of a query's changelog to a store."""

    writer: WindowSets

    def __call__(self, batch: Batch, number: int) -> None:
        layout, table = self.writer.layout, batch.table
        moment = table.column("_ts").cast(pa.int64())
        sign = pc.if_else(pc.equal(table.column("_op"), "+"), pa.scalar(1, pa.int8()), pa.scalar(-1, pa.int8()))
        names = [*([ENDS] if layout.ends else []), *(field.name for field in layout.schema)]
        rows = pa.table([moment, sign, *(table.column(name) for name in names)], names=layout.arrow.names)
        self.writer.apply(number, rows.cast(layout.arrow), _clock_of(batch, moment))


@dataclass(frozen=True)
class _ScanTask:
    """Scans a sub-window in a worker. Yields one row per summary, with its table as Arrow IPC."""

    root: str
    slices: tuple[Slice, ...]
    core: Core

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            continue
        made = scan_locally(Path(self.root), self.slices, self.core)
        blobs = []
        for summary in self.core.summaries:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, made[summary].schema) as writer:
                writer.write_table(made[summary])
            blobs.append(sink.getvalue().to_pybytes())
        numbers = pa.array(np.arange(len(blobs)), pa.int32())
        yield pa.RecordBatch.from_arrays([numbers, pa.array(blobs, pa.binary())], names=["number", "data"])


def spark_scan(spark: SparkSession, priority: int) -> Scan:
    """Scan sub-windows as Spark jobs, in the pool of the priority. The workers must have access to the store's files."""

    def scan(root: Path, slices: Sequence[Slice], core: Core) -> Tables:
        task = _ScanTask(str(root), tuple(slices), core)
        with in_pool(spark, pool_of(priority)), sash_errors():
            found = spark.range(0, 1, 1, 1).mapInArrow(task, "number INT, data BINARY").collect()
        tables = {row["number"]: pa.ipc.open_stream(row["data"]).read_all() for row in found}
        return {summary: tables[number] for number, summary in enumerate(core.summaries)}

    return scan
