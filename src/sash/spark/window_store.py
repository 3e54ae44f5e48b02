"""Window stores on Spark: a streaming query that keeps a window, and scans of sub-windows as Spark jobs.

A micro-batch comes to the driver as Arrow, where the store's writer takes it in under its number: what Spark repeats
after a failure is not taken in twice, because the checkpoint lies inside the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from sash.errors import BadRowError
from sash.plan.catalog import StreamEntry
from sash.spark.errors import sash_errors
from sash.spark.handle import StreamingHandle
from sash.spark.legs import micros
from sash.spark.plan import Source, heartbeats
from sash.spark.pools import in_pool, pool_of
from sash.spark.scatter import TIME
from sash.sql.render import quoted
from sash.time import BEGINNING
from sash.window_store.core import Core
from sash.window_store.manifest import ENDS, SIGN, Slice
from sash.window_store.reading import Scan, Tables, scan_here
from sash.window_store.writer import WindowWriter

_BEAT = "_beat"


def kept_frame(source: Source, entry: StreamEntry) -> DataFrame:
    """A stream's rows with their times in microseconds, and, where it has heartbeats, these as rows marked so."""
    dtype = next(field.dtype for field in entry.schema if field.name == entry.time)
    moment = quoted(source.time) if source.time is not None else micros(quoted(entry.time), dtype)
    names = [quoted(field.name) for field in entry.schema]
    rows = source.frame.selectExpr(f"{moment} AS {TIME}", *names)
    if source.heartbeat is None:
        return rows
    beats = heartbeats(source).selectExpr(TIME, *(f"NULL AS {name}" for name in names), f"true AS {_BEAT}")
    return rows.selectExpr("*", f"false AS {_BEAT}").unionAll(beats)


@dataclass(frozen=True)
class TakeRows:
    """What a streaming query calls with every micro-batch of a stream."""

    writer: WindowWriter
    source: Source

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
class TakeChanges:
    """What a standing query calls with every batch of its answer's changes: they come in order of time, so the latest
    of them is the clock."""

    writer: WindowWriter

    def __call__(self, batch: DataFrame, number: int) -> None:
        layout = self.writer.layout
        dtype = batch.schema["_ts"].dataType.simpleString()
        kinds = {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}
        moment = micros("_ts", kinds.get(dtype, pa.int64()))
        names = [quoted(field.name) for field in layout.schema]
        names = [ENDS, *names] if layout.ends else names
        sign = f"CAST(CASE WHEN _op = '+' THEN 1 ELSE -1 END AS TINYINT) AS {SIGN}"
        table = batch.select(
            sf.expr(moment).alias("_moment"), sf.expr(sign), *(sf.expr(name) for name in names)
        ).toArrow()
        table = table.rename_columns(layout.arrow.names).cast(layout.arrow)
        high = pc.max(table.column(TIME)).as_py()
        self.writer.apply(number, table, BEGINNING if high is None else high)


class Keeping(StreamingHandle):
    """A streaming query that keeps a window. Stopping it lets go of the store, which stays."""

    def __init__(self, query: StreamingQuery, writer: WindowWriter, stopped: Callable[[], None]) -> None:
        super().__init__(query)
        self._writer = writer
        self._stopped = stopped

    def stop(self) -> None:
        """Stop it; the store and its checkpoint stay, unless they were temporary."""
        super().stop()
        self._stopped()

    def progress(self) -> dict[str, Any]:
        """The last batch taken in, window updates so far, late rows, the clock, and how many sub-windows there are."""
        manifest = self._writer.manifest
        return {
            "batch": None if manifest.batch < 0 else manifest.batch,
            "updates": manifest.updates,
            "watermark": None if manifest.clock == BEGINNING else manifest.clock,
            "late": manifest.late,
            "sub_windows": len(manifest.live),
            "rows": sum(part.rows for part in manifest.live),
        }


@dataclass(frozen=True)
class _Job:
    """The scan of a sub-window, in a worker: one row per summary, its table as Arrow IPC."""

    root: str
    parts: tuple[Slice, ...]
    core: Core

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            continue
        made = scan_here(Path(self.root), self.parts, self.core)
        blobs = []
        for summary in self.core.summaries:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, made[summary].schema) as writer:
                writer.write_table(made[summary])
            blobs.append(sink.getvalue().to_pybytes())
        numbers = pa.array(np.arange(len(blobs)), pa.int32())
        yield pa.RecordBatch.from_arrays([numbers, pa.array(blobs, pa.binary())], names=["number", "data"])


def spark_scan(spark: SparkSession, priority: int) -> Scan:
    """Scan sub-windows as Spark jobs, in the pool for that priority. Workers must see the store's files."""

    def scan(root: Path, parts: Sequence[Slice], core: Core) -> Tables:
        job = _Job(str(root), tuple(parts), core)
        with in_pool(spark, pool_of(priority)), sash_errors():
            found = spark.range(0, 1, 1, 1).mapInArrow(job, "number INT, data BINARY").collect()
        tables = {row["number"]: pa.ipc.open_stream(row["data"]).read_all() for row in found}
        return {summary: tables[number] for number, summary in enumerate(core.summaries)}

    return scan
