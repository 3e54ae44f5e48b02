"""The engine: streams and relations by name, and queries over them, on a Spark session."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from sash.durations import microseconds
from sash.errors import CatalogError, UnknownNameError
from sash.plan.catalog import Catalog, stream_entry
from sash.plan.options import Options
from sash.plan.statistics import UNKNOWN, Statistics, declared
from sash.plan.types import Schema
from sash.planning import plan_query
from sash.query import Query
from sash.window_store.options import SnapshotOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sash.metrics import MetricsServer
    from sash.spark.kept_window import KeptWindow
    from sash.spark.listener import BatchListener
    from sash.spark.plan import Source
    from sash.spark.reread import Table
    from sash.spark.sinks import Running
    from sash.window_store.execute import SnapshotExecution
    from sash.window_store.options import AccessOption, IsolationLevel, ReadOption
    from sash.window_store.periodic import PeriodicQuery
    from sash.window_store.queries import WindowQueries
    from sash.window_store.scheduling.recorder import Recorder
    from sash.window_store.snapshot import Snapshot


class Engine:
    """Runs standing queries.

    `spark` is the session to run on (None: an embedded local one), `checkpoint` a directory under which every query
    keeps its own, `shards` the number of parallel parts of a query (None: one per core), `strategy` how the operators of
    a query that says nothing else learn that rows have expired, `partitions` how many partitions its calendar buffers have
    (None: as many as the planner sets, by the rows that it expects).
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        checkpoint: str | None = None,
        shards: int | None = None,
        strategy: str = "auto",
        partitions: int | None = None,
    ) -> None:
        from sash.spark.session import default_shards, embedded_session

        if shards is not None and shards < 1:
            raise CatalogError(f"shards must be at least 1, not {shards}")
        self.spark = embedded_session() if spark is None else spark
        self.shards = shards or default_shards(self.spark)
        self.checkpoint = checkpoint
        self.options = Options(strategy, partitions=partitions)
        self._catalog = Catalog(native_type=self._native_type)
        self._streams: dict[str, Source] = {}
        self._relations: dict[str, DataFrame] = {}
        self._updates: dict[str, Source] = {}
        self._tables: dict[str, Table] = {}
        self._refused: dict[str, dict[str, str]] = {}
        self._running: dict[str, Running] = {}
        self._kept: list[KeptWindow] = []
        self._told: list[Callable[[str, dict[str, Any]], None]] = []
        self._listener: BatchListener | None = None
        self._server: MetricsServer | None = None

    def stream(
        self,
        name: str,
        df: DataFrame,
        time: str = "ts",
        slack: str = "0 seconds",
        heartbeat: str | None = None,
        bad_rows: Literal["fail", "drop"] = "fail",
        rate: float | None = None,
        distinct: Mapping[str, float] | None = None,
        statistics: Statistics = UNKNOWN,
    ) -> None:
        """Register a streaming DataFrame under a name.

        `time` is the column with a row's time: a timestamp, a date, or microseconds as BIGINT. `slack` is how long rows
        are held back so that late ones fit in. With a `heartbeat` the wall clock moves the stream's time on while no
        row comes. Rows without a time fail the query, or are dropped and counted. `rate` (rows per second) and
        `distinct` (how many values a column has, by name) help to choose plans, and so do `statistics` that were observed
        (`Running.statistics`, a replay's `Result.statistics`), where these two do not say it; they never change an answer.
        """
        from sash.spark.plan import Source
        from sash.spark.relations import drops
        from sash.spark.types import read_schema

        self._claim(name)
        if not df.isStreaming:
            raise CatalogError(
                f"{name} is not a streaming DataFrame: read it with spark.readStream, or register it as a relation"
            )
        dropping = drops(bad_rows)
        schema, refused = read_schema(df)
        columns = tuple(field.name for field in schema)
        known = declared(name, columns, rate=rate, distinct=distinct, statistics=statistics)
        entry = replace(stream_entry(name, schema, time), statistics=known)
        beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
        source = Source(df, microseconds(slack, "slack"), beat, dropping)
        self._refused[name.lower()] = refused
        self._streams[name.lower()] = source
        self._catalog.streams[name.lower()] = entry

    def relation(
        self,
        name: str,
        df: DataFrame | Callable[[], DataFrame],
        key: str | Sequence[str] | None = None,
        retroactive: bool = True,
        changes: bool = False,
        time: str = "ts",
        heartbeat: str | None = None,
        refresh: str | None = None,
        bad_rows: Literal["fail", "drop"] = "fail",
        rows: float | None = None,
        distinct: Mapping[str, float] | None = None,
        statistics: Statistics = UNKNOWN,
    ) -> None:
        """Register a table under a name; `key` names columns that are unique in it.

        Without `changes` it is read once, when a query starts. With `changes`, a streaming `df` brings its updates: the
        relation's columns, `time` (when the update was made) and `_op`, '+' or '-'. With a key, '+' replaces the key's row
        (`_op` may be left out) and '-' deletes it; without one, rows are a bag. An update counts from its time on, or, if
        it comes later than that, from when it comes, and is counted as late. Queries do not wait for updates unless there
        is a `heartbeat`: then the updates' time holds a query back, and the wall clock moves it on while none comes.

        A `df` that is not streaming, or a function that gives one, is read again every `refresh` while a query runs; what
        differs, by key, is updated then. (A function reads anew what a DataFrame may have cached, such as lists of files.)

        With `retroactive=False`, an update concerns only stream rows that come after it; else it also adds and takes back
        results of rows that are already there. Updates without time or `_op` fail the query, or are dropped and counted.

        `rows`, `distinct` (how many values a column has, by name) and `statistics` that were observed help to choose plans.
        """
        from sash.spark.plan import Source
        from sash.spark.relations import read_relation
        from sash.spark.reread import Table

        def known(schema: Schema) -> Statistics:
            columns = tuple(field.name for field in schema)
            return declared(name, columns, rows=rows, distinct=distinct, statistics=statistics)

        self._claim(name)
        found = read_relation(name, df, key, retroactive, changes, time, heartbeat, refresh, bad_rows, known)
        self._refused[name.lower()] = found.refused
        match found.source:
            case Source():
                self._updates[name.lower()] = found.source
            case Table():
                self._tables[name.lower()] = found.source
            case frame:
                self._relations[name.lower()] = frame
        self._catalog.relations[name.lower()] = found.entry

    def drop(self, name: str) -> None:
        """Forget a stream or relation; queries that were made over it go on."""
        known = name.lower()
        if known not in self._catalog.streams and known not in self._catalog.relations:
            raise CatalogError(f"there is no stream or relation {name}")
        for registered in (
            self._streams,
            self._relations,
            self._updates,
            self._tables,
            self._refused,
            self._catalog.streams,
            self._catalog.relations,
        ):
            registered.pop(known, None)

    @property
    def catalog(self) -> Catalog:
        """The registered streams and relations, by schema."""
        return self._catalog

    def sql(
        self,
        text: str,
        strategy: str | None = None,
        join: str | None = None,
        tau: str | None = None,
        partitions: int | None = None,
        purge: str | None = None,
        buckets: int | None = None,
    ) -> Query:
        """Plan a standing query over the registered streams and relations.

        `strategy` (the engine's, if not given) is how operators learn that rows have expired, `join` how inner joins of
        streams are run: `auto`, `binary`, or a form of the multi-way join. With `tau`, a time such as "5 seconds", changes
        are released at its multiples only, all since the last at once. `partitions` (the engine's, if not given) is the
        number of partitions of calendar buffers; without either the planner sets it, by the rows that it expects. `purge`
        is how often joins that may do it lazily take rows that have ended out of their state; not given, the optimizer
        chooses, and "0 seconds" is at once. `buckets` limits the hash buckets that the windows of a multi-way join have in
        all; without it there is a list for every key.
        """
        from sash.spark.plan import Inputs

        options = Options(
            strategy or self.options.strategy,
            join or self.options.join,
            self.options.tau if tau is None else microseconds(tau, "tau"),
            self.options.partitions if partitions is None else partitions,
            self.options.purge if purge is None else microseconds(purge, "purge"),
            self.options.buckets if buckets is None else buckets,
        )
        try:
            planned = plan_query(text, self._catalog, shards=self.shards, options=options)
        except UnknownNameError as problem:
            self._explain_refused(text, problem)
            raise
        inputs = Inputs({**self._streams, **self._updates}, dict(self._relations), reread=dict(self._tables))
        return Query(planned, self.spark, inputs, self.shards, self.checkpoint, self._keep)

    @property
    def running(self) -> dict[str, Running]:
        """The queries that were started, by name; one that has ended makes room for another of its name."""
        return dict(self._running)

    def on_progress(self, told: Callable[[str, dict[str, Any]], None]) -> None:
        """Call a function with a query's name and its progress after every batch, from a thread of Spark's."""
        self._told.append(told)
        self._listen()

    def metrics(self, port: int = 0, host: str = "127.0.0.1") -> str:
        """Serve the metrics of all queries for Prometheus, and say where; port 0 is any that is free."""
        from sash.metrics import MetricsServer, exposition

        if self._server is not None:
            raise CatalogError(f"the metrics are already served at {self._server.url}")
        try:
            self._server = MetricsServer(lambda: exposition(self.running), port, host)
        except OSError as problem:
            raise CatalogError(f"metrics cannot be served on {host}:{port}: {problem.strerror}") from None
        self._listen()
        return self._server.url

    def close(self) -> None:
        """Stop every query, keeping windows, and serving metrics; the Spark session stays."""
        for running in (*self._running.values(), *(kept for kept in self._kept if kept.active)):
            running.stop()
        self._running.clear()
        self._kept.clear()
        if "windows" in self.__dict__:
            self.windows.close()
        if self._listener is not None:
            self.spark.streams.removeListener(self._listener)
            self._listener = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def _keep(self, name: str, running: Running) -> None:
        self._running[name] = running
        running.told = lambda progress: [told(name, progress) for told in self._told]

    def _listen(self) -> None:
        """Hear of every batch, so that totals are right however seldom they are asked for."""
        from sash.spark.listener import BatchListener

        if self._listener is None:
            self._listener = BatchListener(self._heard)
            self.spark.streams.addListener(self._listener)

    def _heard(self, query: str, batches: Sequence[Any]) -> None:
        for running in self.running.values():
            if running.id == query:
                running.count(batches)

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
        from sash.spark.kept_window import StoreFolder, keep_result, keep_stream
        from sash.window_store.store.layout import layout_of

        if isinstance(what, str):
            entry, source = self._catalog.streams.get(what.lower()), self._streams.get(what.lower())
            if entry is None or source is None:
                raise CatalogError(f"there is no stream {what} to keep: register it with engine.stream first")
            layout = layout_of(name or entry.name, entry.schema, entry.time, window, every, retain)
            folder = StoreFolder.of(path, self.checkpoint, layout.name)
            self._kept.append(keep_stream(self.windows, layout, folder, source, entry, trigger, recorder))
            return self._kept[-1]
        if name is None:
            raise CatalogError("the answer of a query needs a name to be queried by: engine.keep(query, ..., name=...)")
        query = replace(what, planned=what.planned.telling_ends(self.shards))
        ends = query.planned.tells_ends
        layout = layout_of(name, query.schema, "", window, every, retain, result=True, ends=ends)
        folder = StoreFolder.of(path, self.checkpoint, name)
        kept = keep_result(
            self.windows,
            layout,
            folder,
            lambda sink, checkpoint: query.start(sink, trigger=trigger, checkpoint=checkpoint),
            recorder,
        )
        self._kept.append(kept)
        return kept

    def attach(self, name: str, path: str) -> None:
        """Make the window that another process keeps in `path` available under this name."""
        self.windows.attach(name, Path(path))

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
        options = SnapshotOptions(isolation, priority, timeout, access, reads)
        return self.windows.submit(sql, options).result()[0]

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
        options = SnapshotOptions(isolation, priority, timeout, access, reads)
        return self.windows.submit(sql, options).result()

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

    def _claim(self, name: str) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise CatalogError(f"{name!r} cannot be written in SQL: use letters, digits and _ in a name")
        if name.lower() in (*self._catalog.streams, *self._catalog.relations):
            raise CatalogError(f"{name} is already registered")

    def _native_type(self, name: str, sql: str) -> pa.DataType | None:
        from sash.spark.types import expression_type

        source = self._streams.get(name.lower())
        frame = self._relations.get(name.lower()) if source is None else source.frame
        return None if frame is None else expression_type(frame, sql)

    def _explain_refused(self, text: str, problem: UnknownNameError) -> None:
        """If the unknown name is of a column that was left out for its type, say so."""
        for source, columns in self._refused.items():
            for column, dtype in columns.items():
                if re.search(rf"\b{re.escape(column)}\b", text, re.IGNORECASE):
                    raise CatalogError(
                        f"column {column} of {source} is {dtype}, which Sash cannot hold: select a part of it, or cast it, "
                        "in the DataFrame that you register"
                    ) from problem
