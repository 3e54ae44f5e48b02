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
from sash.plan.catalog import Catalog
from sash.plan.options import Options
from sash.plan.statistics import UNKNOWN, Statistics
from sash.planning import plan_query
from sash.query import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sash.metrics import MetricsServer
    from sash.spark.listener import BatchListener
    from sash.spark.plan import Source
    from sash.spark.reread import Table
    from sash.spark.sinks import Running
    from sash.spark.window_store import Keeping
    from sash.window_store.periodic import Periodic
    from sash.window_store.queries import Asked, WindowQueries
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
        self._keeping: list[Keeping] = []
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

        self._catalog.check_name(name)
        if not df.isStreaming:
            raise CatalogError(
                f"{name} is not a streaming DataFrame: read it with spark.readStream, or register it as a relation"
            )
        dropping = drops(bad_rows)
        schema, refused = read_schema(df)
        beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
        source = Source(df, microseconds(slack, "slack"), beat, dropping)
        self._catalog.add_stream(name, schema, time, rate=rate, distinct=distinct, statistics=statistics)
        self._refused[name.lower()] = refused
        self._streams[name.lower()] = source

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

        self._catalog.check_name(name)
        found = read_relation(name, df, key, changes, time, heartbeat, refresh, bad_rows)
        self._catalog.add_relation(
            name,
            found.schema,
            key=key,
            retroactive=retroactive,
            changes=changes,
            waits=not changes or heartbeat is not None,
            timed=refresh is None,
            rows=rows,
            distinct=distinct,
            statistics=statistics,
        )
        self._refused[name.lower()] = found.refused
        match found.source:
            case Source():
                self._updates[name.lower()] = found.source
            case Table():
                self._tables[name.lower()] = found.source
            case frame:
                self._relations[name.lower()] = frame

    def drop(self, name: str) -> None:
        """Forget a stream or relation; queries that were made over it go on."""
        self._catalog.drop(name)
        for registered in (self._streams, self._relations, self._updates, self._tables, self._refused):
            registered.pop(name.lower(), None)

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
        for running in (*self._running.values(), *(keeping for keeping in self._keeping if keeping.active)):
            running.stop()
        self._running.clear()
        self._keeping.clear()
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
    ) -> Keeping:
        """Keep the window of a registered stream, or the answer of a query, for snapshot and periodic queries.

        The window is `window` long and moves on by `every` at a time: lengths of time, or, for a stream, numbers of rows.
        An answer is kept as of every `every`, its rows spread over the window's sub-windows by when they will end.
        It is kept in `path` (None: under the engine's checkpoint directory, or in a temporary place), where queries of
        other processes can attach to it. `retain` replaced sub-windows stay for queries that have read them: these then
        read again what has changed, instead of starting again. A query's answer needs a `name` to be asked by.
        """
        from sash.spark.keeping import Place, keep_answer, keep_stream, layout_of

        if isinstance(what, str):
            entry, source = self._catalog.streams.get(what.lower()), self._streams.get(what.lower())
            if entry is None or source is None:
                raise CatalogError(f"there is no stream {what} to keep: register it with engine.stream first")
            layout = layout_of(name or entry.name, entry.schema, entry.time, window, every, retain)
            place = Place.of(path, self.checkpoint, layout.name)
            self._keeping.append(keep_stream(self.windows, layout, place, source, entry, trigger, recorder))
            return self._keeping[-1]
        if name is None:
            raise CatalogError("the answer of a query needs a name to be asked by: engine.keep(query, ..., name=...)")
        query = replace(what, planned=what.planned.telling_ends(self.shards))
        ends = query.planned.tells_ends
        layout = layout_of(name, query.schema, "", window, every, retain, result=True, ends=ends)
        place = Place.of(path, self.checkpoint, name)
        kept = keep_answer(
            self.windows,
            layout,
            place,
            lambda sink, checkpoint: query.start(sink, trigger=trigger, checkpoint=checkpoint),
            recorder,
        )
        self._keeping.append(kept)
        return kept

    def attach(self, name: str, path: str) -> None:
        """Ask the window that another process keeps in `path`, under this name."""
        self.windows.attach(name, Path(path))

    def snapshot(
        self,
        sql: str,
        isolation: str = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: str = "auto",
        reads: str = "local",
    ) -> Snapshot:
        """Answer a query over a kept window now, while the window moves on.

        `isolation` is latest (= ttu), latest-window-serializable, window-serializable or serial. A query of a higher
        priority suspends others. `timeout` is in seconds. `access` forces an access path (WS or SS), `reads="spark"`
        scans sub-windows as Spark jobs.
        """
        return self.snapshots([sql], isolation, priority, timeout, access, reads)[0]

    def snapshots(
        self,
        sql: Sequence[str],
        isolation: str = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: str = "auto",
        reads: str = "local",
    ) -> list[Snapshot]:
        """Answer queries that differ only in the lengths of their windows, in one pass over the longest."""
        return self.windows.snapshot(sql, isolation, priority, timeout, access, reads, self._streams)

    def ask(
        self,
        sql: str | Sequence[str],
        isolation: str = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: str = "auto",
        reads: str = "local",
    ) -> Asked:
        """As `snapshots`, without waiting: what comes back has `result()`, and `cancel()` for another thread."""
        return self.windows.ask(sql, isolation, priority, timeout, access, reads, self._streams)

    def periodic(
        self,
        sql: str | Sequence[str],
        every: int = 1,
        priority: int = 0,
        isolation: str = "latest",
        access: str = "auto",
        reads: str = "local",
        callback: Callable[[list[Snapshot]], None] | None = None,
        queue: int = 16,
    ) -> Periodic:
        """Answer a query over a kept window now and after every `every` window updates.

        Iterate over what comes back for the answers, or give a callback; `queue` answers wait at most. Each answer is a
        list: of one, or of as many as there are queries that differ only in the lengths of their windows.
        """
        return self.windows.periodic(
            sql, every, priority, isolation, access, reads, callback, queue, registered=self._streams
        )

    @cached_property
    def windows(self) -> WindowQueries:
        """The kept windows and the queries over them."""
        from sash.spark.window_store import spark_scan
        from sash.window_store.queries import WindowQueries

        spark = self.spark
        found = WindowQueries(parallel=self.shards, to_spark=spark.createDataFrame)
        found.scans["spark"] = lambda priority: spark_scan(spark, priority)
        return found

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
