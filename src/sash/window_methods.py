"""The engine's methods about kept windows: keep them, and answer snapshot and periodic queries over them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sash.arguments import check_function, check_path, shown
from sash.errors import CatalogError
from sash.plan.catalog import check_identifier
from sash.plan.options import Trigger
from sash.query import Query
from sash.window_store.options import SnapshotOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sash.plan.catalog import Catalog
    from sash.spark.kept_window import KeptWindow, StartWriting
    from sash.spark.sources.inputs import StreamSource
    from sash.window_store.execute import SnapshotExecution
    from sash.window_store.options import AccessOption, IsolationLevel, ReadOption
    from sash.window_store.periodic import PeriodicQuery
    from sash.window_store.queries import WindowQueries
    from sash.window_store.scheduling.recorder import Recorder
    from sash.window_store.snapshot import Snapshot
    from sash.window_store.store.sets import WindowSets


class WindowMethods:
    """What an engine does with kept windows; the attributes are the engine's."""

    spark: SparkSession
    shards: int
    checkpoint: str | None
    _catalog: Catalog
    _streams: dict[str, StreamSource]
    _kept: list[KeptWindow]

    def keep(
        self,
        what: str | Query,
        window: str | int,
        every: str | int,
        name: str | None = None,
        path: str | None = None,
        retain: int = 0,
        trigger: str | None = None,
        recorder: Recorder | None = None,
    ) -> KeptWindow:
        """Keep the window of a registered stream, or the answer of a query, for snapshot and periodic queries.

        The window has the length `window` and advances by `every`: two durations or, for a stream, two numbers of rows.
        The answer of a query is updated every `every`; its rows are assigned to sub-windows by their expiration times. An
        answer needs a `name`, by which it is queried. The store is in `path` (None: under the engine's checkpoint
        directory, or in a temporary folder). Queries of other processes can attach to it. `retain` is the number of
        replaced sub-windows to keep for running queries, which then repeat single reads instead of restarting.
        """
        from sash.spark.connect import refuse_connect
        from sash.spark.kept_window import StoreFolder, keep_window, start_stream
        from sash.spark.sinks.function import WindowSink
        from sash.spark.window_store import ApplyChanges
        from sash.window_store.store.layout import keeps_ends, layout_of

        refuse_connect(self.spark, "keep()")
        if name is not None:
            check_identifier(name)
        path = None if path is None else check_path("path", path)
        Trigger.parse(trigger)
        if isinstance(what, str):
            check_identifier(what)
            entry, source = self._catalog.streams.get(what.lower()), self._streams.get(what.lower())
            if entry is None or source is None:
                raise CatalogError(f"there is no stream {what} to keep: register it with engine.stream first")
            unkept = self._catalog.not_carried.get(what.lower())
            layout = layout_of(name or entry.name, entry.schema, entry.time, window, every, retain, not_carried=unkept)
            folder = StoreFolder.of(path, self.checkpoint, layout.name)
            start: StartWriting = partial(start_stream, source, entry, trigger, folder.checkpoint)
        elif isinstance(what, Query):
            if name is None:
                raise CatalogError("the answer of a query needs a name: engine.keep(query, ..., name=...)")
            folder = StoreFolder.of(path, self.checkpoint, name)
            premature = keeps_ends(folder.root)
            query = replace(what, planned=what.planned.with_expiration(self.shards, premature=premature))
            ends = query.planned.has_expiration
            layout = layout_of(name, query.schema, "", window, every, retain, result=True, ends=ends)

            def start(writer: WindowSets) -> StreamingQuery:
                return query.start(
                    WindowSink(ApplyChanges(writer)), trigger=trigger, checkpoint=folder.checkpoint
                ).query

        else:
            raise CatalogError(f"keep needs the name of a stream, or a query of engine.sql, not {shown(what)}")
        self._kept.append(keep_window(self.windows, layout, folder, start, recorder))
        return self._kept[-1]

    def attach(self, name: str, path: str) -> None:
        """Make the window that another process keeps in `path` available under this name."""
        self.windows.attach(check_identifier(name), Path(check_path("path", path)))

    def snapshot(
        self,
        sql: str,
        isolation: IsolationLevel = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: AccessOption = "auto",
        reads: ReadOption = "local",
    ) -> Snapshot:
        """Answer a query over a kept window as of now, while the window is updated.

        `isolation` is latest (= ttu), latest-window-serializable, window-serializable or serial. A query of a higher
        priority suspends others. `timeout` is in seconds. `access` forces an access path (WS or SS), `reads="spark"`
        scans sub-windows as Spark jobs.
        """
        return self.submit(sql, isolation, priority, timeout, access, reads).result()[0]

    def snapshots(
        self,
        sql: Sequence[str],
        isolation: IsolationLevel = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: AccessOption = "auto",
        reads: ReadOption = "local",
    ) -> list[Snapshot]:
        """Answer queries that differ only in the lengths of their windows, in one pass over the longest."""
        return self.submit(sql, isolation, priority, timeout, access, reads).result()

    def submit(
        self,
        sql: str | Sequence[str],
        isolation: IsolationLevel = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: AccessOption = "auto",
        reads: ReadOption = "local",
    ) -> SnapshotExecution:
        """Start snapshots without waiting for them. The returned object has `result()` and `cancel()`."""
        return self.windows.submit(sql, SnapshotOptions(isolation, priority, timeout, access, reads))

    ask = submit

    def periodic(
        self,
        sql: str | Sequence[str],
        every: int = 1,
        priority: int = 0,
        isolation: IsolationLevel = "latest",
        access: AccessOption = "auto",
        reads: ReadOption = "local",
        callback: Callable[[list[Snapshot]], None] | None = None,
        queue: int = 16,
    ) -> PeriodicQuery:
        """Answer a query over a kept window now and after every `every` window updates.

        Iterate over the returned query for its answers, or pass a callback. Up to `queue` answers wait to be consumed.
        Each answer is a list with one snapshot per query; the queries may differ only in the lengths of their windows.
        """
        options = SnapshotOptions(isolation, priority, access=access, reads=reads, every=every)
        if callback is not None:
            check_function("callback", callback)
        return self.windows.periodic(sql, options, callback, queue)

    @cached_property
    def windows(self) -> WindowQueries:
        """The kept windows and the queries over them."""
        from sash.spark.window_store import spark_scan
        from sash.window_store.queries import WindowQueries

        spark = self.spark
        found = WindowQueries(self.shards, to_spark=spark.createDataFrame, streams=self._catalog.streams)
        found.scans["spark"] = lambda priority: spark_scan(spark, priority)
        return found
