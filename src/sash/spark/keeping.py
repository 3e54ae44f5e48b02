"""Starting to keep: the store, its writer and the streaming query that fills it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from sash.durations import microseconds
from sash.errors import CatalogError
from sash.plan.catalog import StreamEntry
from sash.plan.options import Trigger
from sash.plan.types import Schema
from sash.spark.errors import sash_errors
from sash.spark.handle import StreamingHandle
from sash.spark.plan import Source
from sash.spark.pools import STREAMS, in_pool
from sash.spark.session import query_settings
from sash.spark.sinks.base import WriteBatch
from sash.spark.sinks.start import await_sources, set_trigger
from sash.spark.window_store import Keeping, TakeChanges, TakeRows, kept_frame
from sash.window_store.manifest import Kind, Layout
from sash.window_store.queries import WindowQueries
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.writer import WindowWriter


@dataclass(frozen=True)
class Place:
    """Where a store is, and whether it goes when its query is stopped."""

    root: Path
    temporary: bool = False

    @staticmethod
    def of(path: str | None, checkpoint: str | None, name: str) -> Place:
        """The path that was given, one under the engine's checkpoint directory, or a temporary one."""
        if path is not None:
            return Place(Path(path))
        if checkpoint is not None and "://" not in checkpoint:
            return Place(Path(checkpoint) / "windows" / name)
        return Place(Path(tempfile.mkdtemp(prefix="sash-window-")), temporary=True)


def layout_of(
    name: str,
    schema: Schema,
    time: str,
    window: str | int,
    every: str | int,
    retain: int,
    *,
    result: bool = False,
    ends: bool = False,
) -> Layout:
    """How the rows are to be cut, from lengths of time, or from numbers of rows."""
    kind: Kind = "result" if result else "time"
    if isinstance(window, int) and isinstance(every, int) and not result:
        kind, long, short = "rows", window, every
    elif isinstance(window, str) and isinstance(every, str):
        long, short = microseconds(window, "window"), microseconds(every, "every")
    else:
        raise CatalogError(
            'window and every are both lengths of time, as in "60 seconds" and "1 second", or (of a stream) both numbers of rows'
        )
    if short < 1 or long < short or long % short:
        raise CatalogError(f"window must be a whole multiple of every, and {window!r} is not one of {every!r}")
    if retain < 0:
        raise CatalogError(f"retain is the number of replaced sub-windows to keep: 0 or more, not {retain}")
    return Layout(name, schema, time, kind, short, long // short, retain, ends)


def keep_stream(
    queries: WindowQueries,
    layout: Layout,
    place: Place,
    source: Source,
    entry: StreamEntry,
    trigger: str | None,
    recorder: Recorder | None = None,
) -> Keeping:
    """Keep the window of a stream."""
    spark = source.frame.sparkSession
    checkpoint = str(place.root / "checkpoint")

    def start(writer: WindowWriter) -> StreamingQuery:
        frame = kept_frame(source, entry)
        plain = frame.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
        with query_settings(spark, 1, checkpoint), in_pool(spark, STREAMS), sash_errors():
            return await_sources(
                set_trigger(plain, Trigger.parse(trigger)).foreachBatch(TakeRows(writer, source)).start()
            )

    return _kept(queries, layout, place, start, recorder)


def keep_answer(
    queries: WindowQueries,
    layout: Layout,
    place: Place,
    run: Callable[[WriteBatch, str], StreamingHandle],
    recorder: Recorder | None = None,
) -> Keeping:
    """Keep the answer of a query, which `run` starts into a sink, with its checkpoint in a place."""
    return _kept(
        queries, layout, place, lambda writer: run(TakeChanges(writer), str(place.root / "checkpoint")).query, recorder
    )


def _kept(
    queries: WindowQueries,
    layout: Layout,
    place: Place,
    start: Callable[[WindowWriter], StreamingQuery],
    recorder: Recorder | None,
) -> Keeping:
    writer = queries.write(place.root, layout, recorder)

    def stopped() -> None:
        queries.forget(layout.name)
        writer.close()
        if place.temporary:
            shutil.rmtree(place.root, ignore_errors=True)

    try:
        return Keeping(start(writer), writer, stopped)
    except BaseException:
        stopped()
        raise
