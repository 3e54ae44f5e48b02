"""The engine: registers streams and relations, and plans queries over them, on a Spark session."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from sash.arguments import check_count, check_flag, check_function, check_path
from sash.display import TextTable, counted, section
from sash.durations import microseconds
from sash.errors import CatalogError
from sash.plan.catalog import Catalog
from sash.plan.nodes import ONE_ROW
from sash.plan.options import MOST_SHARDS, PROBING, BadRows, JoinForm, Options, Strategy
from sash.plan.statistics import UNKNOWN, Statistics
from sash.planning import plan_query
from sash.query import Query
from sash.started_queries import StartedQueries
from sash.user_library import add_aggregate, add_function
from sash.window_methods import WindowMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from sash.history.limits import HistoryLimits
    from sash.job import Job
    from sash.job_query import JobQuery
    from sash.running import RunningQuery
    from sash.running_job import RunningJob
    from sash.spark.kept_window import KeptWindow
    from sash.spark.sources.history import ReadAgain, Rereading
    from sash.spark.sources.inputs import KeptRows, StreamSource
    from sash.spark.sources.postgres import PostgresRelation
    from sash.spark.sources.refresh import RefreshedTable


class Engine(WindowMethods):
    """Runs standing queries. As a context manager it closes itself: `with sash.Engine() as engine: ...`.

    `spark` is the session to run on; None starts an embedded local one. `checkpoint` is the directory for the checkpoints
    of queries. `shards` is the number of parallel parts of a query; None is that of the checkpoint, or one per core.
    `strategy` and `partitions` are the defaults of `sql`, and so are `probe` and `patience`, for the strategies that they
    belong to.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        checkpoint: str | PathLike[str] | None = None,
        shards: int | None = None,
        strategy: Strategy = "auto",
        partitions: int | None = None,
        probe: str | None = None,
        patience: str | None = None,
    ) -> None:
        from sash.spark.java import check_version
        from sash.spark.log import redirect_messages
        from sash.spark.session import check_session, default_shards, embedded_session
        from sash.spark.temporary import remove_abandoned

        self.options = Options(strategy, partitions=partitions).for_engine()
        self._timing = _length("probe", probe), _length("patience", patience)
        Options("time-probing", probe=self._timing[0]), Options("piggyback", patience=self._timing[1])
        self.checkpoint = None if checkpoint is None else check_path("checkpoint", checkpoint)
        given = None if shards is None else check_count("shards", shards, most=MOST_SHARDS)
        self.spark = embedded_session() if spark is None else check_session(spark)
        check_version(self.spark.version)
        redirect_messages()
        remove_abandoned()
        self.shards = given or default_shards(self.spark)
        self._default_shards = None if given else self.shards
        self._catalog = Catalog(spark_type=self._spark_type)
        self._streams: dict[str, StreamSource] = {}
        self._relations: dict[str, DataFrame] = {}
        self._updates: dict[str, StreamSource] = {}
        self._tables: dict[str, RefreshedTable] = {}
        self._kept: list[KeptWindow] = []
        self._started = StartedQueries(self.spark, self._query_groups)
        self.history: tuple[Path, HistoryLimits] | None = None
        """The run folder in which jobs keep their history, and its bounds, if they keep any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stream(
        self,
        name: str,
        df: DataFrame,
        time: str = "ts",
        slack: str = "0 seconds",
        heartbeat: str | None = None,
        bad_rows: BadRows = "fail",
        rate: float | None = None,
        distinct: Mapping[str, float] | None = None,
        statistics: Statistics = UNKNOWN,
        history: ReadAgain | Rereading | None = None,
        unbounded: str = "refuse",
        partition_by: str | Sequence[str] | None = None,
        idle_after: str | None = None,
        bad_rows_into: KeptRows = None,
        late_rows_into: KeptRows = None,
        max_bad_rows: float | None = None,
        peak: float | None = None,
        max_jump: str | None = None,
        max_rows_per_batch: int | None = None,
    ) -> None:
        """Register a streaming DataFrame under a name.

        `time` is the column with the time of a row: a timestamp, a date, or microseconds as BIGINT. `slack` is the
        watermark delay: how long rows are held back so that those that arrive late are still in order. With a `heartbeat`,
        the wall clock advances the stream's clock while no row arrives. `bad_rows` decides whether rows without a time fail
        the query, or are dropped and counted.

        `rate` (rows per second), `peak` (the highest rate, if it fluctuates), `distinct` (the number of values of a column,
        by name) and observed `statistics` (from `RunningQuery.statistics`, or `Result.statistics` of a replay) are
        estimates for the optimizer. They never change the answer.

        `history` is a function that reads rows of the stream again, for queries that are added to a job with `backfill`.
        It is given the list of the files that the job has read or, for a source that is not a folder, Spark's offset as
        JSON, and returns their rows as a DataFrame that is not streaming. A plain stream of files, such as
        `spark.readStream.schema(...).parquet(path)`, does not need one.

        With `unbounded="allow"`, queries that keep all rows of the stream for ever run: the stream has no window in them,
        or `[RANGE UNBOUNDED]`. Their state grows without end. By default they are refused.

        `partition_by` names the column, or columns, with the partition that a row comes from, where partitions may be out of
        step: rows have to be in order within their partition only, and the stream's watermark is that of the slowest
        partition. A partition without rows for `idle_after` (1 minute) is not waited for.

        `bad_rows_into` and `late_rows_into` keep the rows that a job drops: the path of a changelog, or the name of a sink of
        Sash's with its options, as in `("kafka", {...})`. With `max_bad_rows=1`, a job fails when more than one percent of
        the stream's rows have no time.

        With `max_jump="1 day"`, rows whose time is more than a day ahead of the time of their batch, by the clock of the
        machine, are dropped and counted; `bad_rows_into` keeps them. Without it, one row far in the future makes all rows
        after it late.

        `max_rows_per_batch` is for a `df` that reads files with the option `maxFilesPerTrigger`, which bounds the first batch:
        later ones read as many files as should have so many rows together, by their sizes, and at least one. For Kafka, read `df`
        with `maxOffsetsPerTrigger`.
        """
        from sash.spark.sources.history import Rereading
        from sash.spark.sources.inputs import (
            IDLE_AFTER,
            StreamSource,
            check_frame,
            drops_bad_rows,
            read_batch_limit,
            read_rejects,
            stream_partitions,
        )

        self._catalog.check_name(name)
        if not check_frame(name, df).isStreaming:
            raise CatalogError(
                f"{name} is not a streaming DataFrame: read it with spark.readStream, or register it as a relation"
            )
        dropping = drops_bad_rows(bad_rows) or bad_rows_into is not None or max_bad_rows is not None
        schema, not_carried, partition = stream_partitions(name, df, partition_by)
        beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
        again = history if isinstance(history, Rereading) else None
        if history is not None and again is None:
            again = Rereading(check_function("history", history))
        if idle_after is not None and partition is None:
            raise CatalogError(f"stream {name} has no partitions to be idle: name their column with partition_by")
        idle = IDLE_AFTER if idle_after is None else microseconds(idle_after, "idle_after")
        source = StreamSource(
            df, microseconds(slack, "slack"), beat, dropping, history=again, partition=partition, idle_after=idle,
            rejects=read_rejects(df, schema, bad_rows_into, late_rows_into, max_bad_rows),
            max_jump=None if max_jump is None else microseconds(max_jump, "max_jump"),
            batch_limit=read_batch_limit(name, df, max_rows_per_batch),
        )  # fmt: skip
        self._catalog.add_stream(
            name,
            schema,
            time,
            rate=rate,
            distinct=distinct,
            statistics=statistics,
            not_carried=not_carried,
            unbounded=unbounded,
            peak=peak,
        )
        self._streams[name.lower()] = source

    def relation(
        self,
        name: str,
        df: DataFrame | Callable[[], DataFrame] | PostgresRelation,
        key: str | Sequence[str] | None = None,
        retroactive: bool = True,
        changes: bool = False,
        time: str = "ts",
        heartbeat: str | None = None,
        refresh: str | None = None,
        bad_rows: BadRows = "fail",
        rows: float | None = None,
        distinct: Mapping[str, float] | None = None,
        statistics: Statistics = UNKNOWN,
    ) -> None:
        """Register a table under a name; `key` names columns that are unique in it.

        By default the table is read once, when a query starts. With `changes`, `df` is a stream, a changelog: it has the
        relation's columns, `time` (when the update was made) and `_op`, '+' or '-'. With a key, '+' replaces the
        row of the key (`_op` may be missing) and '-' deletes it; without a key, the relation is a bag. An update takes
        effect at its time; one that arrives later takes effect when it arrives, and is counted as late. Queries do not wait
        for updates unless there is a `heartbeat`: then a query's clock waits for that of the updates, which the wall clock
        advances while no update arrives.

        With `refresh`, a period such as "10 seconds", a `df` that is not streaming, or a function that returns one, is read
        again after every period while a query runs, and rows that differ, by key, are updated. (A function avoids what a
        DataFrame caches, such as lists of files.)

        With `retroactive=False`, an update affects only stream rows that arrive after it. Otherwise it also adds and
        retracts results of earlier rows. `bad_rows` decides whether updates without a time or `_op` fail the query, or are
        dropped and counted.

        `rows`, `distinct` (the number of values of a column, by name) and observed `statistics` are estimates for the
        optimizer.
        """
        from sash.spark.sources.inputs import StreamSource, read_relation
        from sash.spark.sources.refresh import RefreshedTable

        self._catalog.check_name(name)
        found = read_relation(name, df, key, check_flag("changes", changes), time, heartbeat, refresh, bad_rows)
        changing = isinstance(found.source, StreamSource | RefreshedTable)
        self._catalog.add_relation(
            name,
            found.schema,
            key=key,
            retroactive=check_flag("retroactive", retroactive),
            changes=changing,
            waits=not changing or heartbeat is not None,
            timed=refresh is None,
            rows=rows,
            distinct=distinct,
            statistics=statistics,
            not_carried=found.not_carried,
        )
        match found.source:
            case StreamSource():
                self._updates[name.lower()] = found.source
            case RefreshedTable():
                self._tables[name.lower()] = found.source
            case frame:
                self._relations[name.lower()] = frame

    def __repr__(self) -> str:
        kinds = {
            "streams": [entry.name for entry in self._catalog.streams.values()],
            "relations": [entry.name for entry in self._catalog.relations.values()],
            "queries": list(self.running),
        }
        listed = (f"{kind}: {', '.join(names) or 'none'}" for kind, names in kinds.items())
        return f"Engine({'; '.join(listed)})"

    def _repr_html_(self) -> str:
        catalog = self._catalog
        streams = [(e.name, e.time, ", ".join(map(str, e.schema))) for e in catalog.streams.values()]
        relations = [(e.name, ", ".join(map(str, e.schema))) for e in catalog.relations.values()]
        queries = [(name, "running" if running.active else "ended") for name, running in self.running.items()]
        tables = (
            (("stream", "time", "columns"), streams),
            (("relation", "columns"), relations),
            (("query", ""), queries),
        )
        shown_tables = (TextTable(names, rows, most=50, ends=False, width=200).html() for names, rows in tables if rows)
        return section(f"Engine, {counted(self.shards, 'shard', 'shards')}", *shown_tables)

    def drop(self, name: str) -> None:
        """Remove a stream or relation; running queries over it continue."""
        self._catalog.drop(name)
        for registered in (self._streams, self._relations, self._updates, self._tables):
            registered.pop(name.lower(), None)

    @contextmanager
    def replacing_sources(self) -> Iterator[None]:
        """All streams, relations and functions are removed, so that others can be registered; they are restored if the block fails."""
        parts: tuple[dict[str, Any], ...] = (
            self._streams, self._relations, self._updates, self._tables,
            self._catalog.streams, self._catalog.relations, self._catalog.not_carried,
            self._catalog.user.functions, self._catalog.user.aggregates,
        )  # fmt: skip
        kept = [dict(part) for part in parts]
        for part in parts:
            part.clear()
        try:
            yield
        except BaseException:
            for part, before in zip(parts, kept, strict=True):
                part.clear()
                part.update(before)
            raise

    def function(self, name: str, function: Callable[..., Any], returns: str | pa.DataType, version: str = "1") -> None:
        """Register a Python function for SQL: it takes Arrow arrays and returns one of the same length.

        `returns` is the type of its result, such as "DOUBLE". It must depend on its arguments alone. `version` is part of the
        identity of queries that use it: a checkpoint that was written with another one is refused, so change it whenever the
        function would give other results.
        """
        from sash.spark.packing import pack

        add_function(self._catalog, name, function, returns, version, pack)

    def aggregate(self, name: str, code: type[Any], returns: str | pa.DataType, version: str = "1") -> None:
        """Register a Python class as an aggregate for SQL.

        Its methods are `init()`, which returns a state, `add(state, *arrays)`, which returns the state with rows of one group,
        given as Arrow arrays, and `result(state)`. With `remove(state, *arrays)` rows that leave the window are taken back;
        with `merge(earlier, later)` rows that expire in order of arrival need no `remove`; with neither, the aggregate of a
        group is computed anew from its rows at each change. States must be picklable. `returns` and `version` are as in
        `function`.
        """
        from sash.spark.packing import pack

        add_aggregate(self._catalog, name, code, returns, version, pack)

    @property
    def catalog(self) -> Catalog:
        """The registered streams and relations, with their schemas."""
        return self._catalog

    def sql(
        self,
        text: str,
        strategy: Strategy | None = None,
        join: JoinForm | None = None,
        tau: str | None = None,
        partitions: int | None = None,
        purge: str | None = None,
        buckets: int | None = None,
        probe: str | None = None,
        patience: str | None = None,
        reorder: bool | None = None,
    ) -> Query:
        """Plan a standing query over the registered streams and relations.

        `strategy` is how operators learn that rows have expired; the default is the engine's. `join` is how inner joins of
        streams are executed: `auto`, `binary`, or a form of the multi-way join. With `tau`, a time such as "5 seconds",
        changes are released only at its multiples. `partitions` is the number of partitions of calendar buffers; the
        default is the engine's, or else the planner chooses it by the number of rows that it expects. `purge` is the interval
        at which joins that support lazy expiration remove expired rows from their state; by default they are removed at once.
        `buckets` is the total number of hash buckets of a multi-way join's windows; by default there is
        a list for every key. `probe` is the period, in event time, at which time probing asks the inputs of an operator for
        the time; by default it does so once per batch. `patience` is how long piggybacking lets a time wait for a row that
        carries it; by default a thousandth of the rows' lifetime. With `reorder=False` the orders of multi-way joins stay as
        planned, instead of following the rates at run time.
        """
        from sash.spark.sources.inputs import QueryInputs

        chosen = self.options.strategy if strategy is None else strategy
        default_probe, default_patience = self._timing
        options = Options(
            chosen,
            self.options.join if join is None else join,
            self.options.tau if tau is None else microseconds(tau, "tau"),
            self.options.partitions if partitions is None else partitions,
            self.options.purge if purge is None else microseconds(purge, "purge"),
            self.options.buckets if buckets is None else buckets,
            (default_probe if chosen in PROBING else None) if probe is None else _length("probe", probe),
            (default_patience if chosen == "piggyback" else None)
            if patience is None
            else _length("patience", patience),
            self.options.reorder if reorder is None else reorder,
        ).for_engine()
        planned = plan_query(text, self._catalog, shards=self.shards, options=options)
        inputs = QueryInputs({**self._streams, **self._updates}, dict(self._relations), refreshed=dict(self._tables))
        return Query(
            planned,
            self.spark,
            inputs,
            self.shards,
            self.checkpoint,
            self._started.add,
            self.shards_chosen,
            self.history,
        )

    def job(
        self,
        name: str | None = None,
        trigger: str | None = None,
        checkpoint: str | PathLike[str] | None = None,
        shards: int | None = None,
    ) -> Job:
        """Make a job: add queries to it with `Job.add`, and start them together, as one dataflow.

        A job reads each stream once, and runs operators that several queries need once. `trigger` is that of `Query.start`.
        The checkpoint is in the folder `name` ("job") of `checkpoint` (None: the engine's).
        """
        from sash.job import Job

        chosen = None if checkpoint is None else check_path("checkpoint", checkpoint)
        width = None if shards is None else check_count("shards", shards, most=MOST_SHARDS)
        return Job(self, name, trigger, chosen, width)

    @property
    def running(self) -> dict[str, RunningQuery | JobQuery]:
        """The started queries by name, those of jobs among them; a new query replaces an ended one of the same name."""
        return self._started.by_name

    @property
    def shards_chosen(self) -> bool:
        """Whether the number of shards was chosen; otherwise that of a checkpoint counts."""
        return self.shards != self._default_shards

    def on_progress(self, callback: Callable[[str, dict[str, Any]], None]) -> None:
        """Call a function with a query's name and its progress after every batch, from one of Spark's threads."""
        check_function("callback", callback)
        self._started.listen()
        self._started.on_batch(callback)

    def on_batch(self, callback: Callable[[str, dict[str, Any]], None]) -> None:
        """Call a function with a query's name and its progress after every batch that is noticed: no listener is added."""
        self._started.on_batch(callback)

    def metrics(self, port: int = 0, host: str = "127.0.0.1") -> str:
        """Serve the metrics of all queries for Prometheus, and return the URL; port 0 is any free port."""
        return self._started.serve_metrics(port, host)

    def _query_groups(self) -> list[dict[str, Any]]:
        return self.windows.groups() if "windows" in self.__dict__ else []

    def close(self) -> None:
        """Stop all queries, kept windows and the metrics server; the Spark session stays."""
        self._started.stop()
        for kept in self._kept:
            if kept.active:
                kept.stop()
        self._kept.clear()
        if "windows" in self.__dict__:
            self.windows.close()
        self._started.close()

    def register_job(self, running: RunningJob) -> None:
        """Let the engine know a job that has been started: `running`, metrics and `close` include it."""
        self._started.add_job(running)

    def _spark_type(self, name: str, sql: str) -> pa.DataType | str | None:
        from sash.spark.types import expression_type

        if name == ONE_ROW.name:
            return expression_type(self.spark.range(1), sql)
        source = self._streams.get(name.lower())
        frame = self._relations.get(name.lower()) if source is None else source.frame
        return None if frame is None else expression_type(frame, sql)


def _length(name: str, text: str | None) -> int | None:
    """A length of time in microseconds; None if it is not given."""
    return None if text is None else microseconds(text, name)
