"""A standing query: explain it, read its changes as a stream, or start it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.arguments import check_flag, check_path, check_query_name, check_word
from sash.display import code, facts, folded, section
from sash.errors import CatalogError, OptionError
from sash.plan.annotated import PlanNode
from sash.plan.options import MODES, Mode, StartOptions
from sash.plan.patterns import Pattern
from sash.plan.tree import tree
from sash.plan.types import Schema, type_name
from sash.plan.user_versions import user_versions
from sash.planning import Planned
from sash.secret_references import resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.history.limits import HistoryLimits
    from sash.live import LiveAnswer
    from sash.running import RunningQuery
    from sash.spark.progress import ProgressTracker
    from sash.spark.sinks import Sink, WriteFrame
    from sash.spark.sources.inputs import QueryInputs
    from sash.spark.temporary import TemporaryFolder


@dataclass(frozen=True)
class Query:
    """A planned query; made by `Engine.sql`.

    A checkpoint keeps its number of shards: unless the user chose `shards`, a query over it runs with that number.
    """

    planned: Planned
    spark: SparkSession
    inputs: QueryInputs
    shards: int
    checkpoint: str | None = None
    on_start: Callable[[RunningQuery, ProgressTracker], None] | None = None
    shards_chosen: bool = False
    history: tuple[Path, HistoryLimits] | None = None
    """The run folder in which a query that has a name keeps its history, and its bounds, if it keeps any."""

    @property
    def schema(self) -> Schema:
        """The columns of the answer."""
        return self.planned.schema

    @property
    def plan(self) -> PlanNode:
        """The optimized logical plan: a tree of nodes, each with the update pattern of its output."""
        return self.planned.plan

    @property
    def pattern(self) -> Pattern:
        """The update pattern of the answer."""
        return self.planned.pattern

    def explain(self, *, all: bool = False, analyze: bool = False) -> str:  # noqa: A002  (as in EXPLAIN ALL)
        """Return the plan as text: update patterns, estimates, stages and buffers; with `all` also the rejected plans.

        With `analyze` the query first runs over the available input without a sink, and the plan shows the counts of every
        operator. `RunningQuery.explain` does the same for a running query.
        """
        if not analyze:
            return self.planned.explain(all=all)
        running = replace(self, checkpoint=None, on_start=None).start("noop", trigger="available_now")
        try:
            running.await_termination()
            return running.explain()
        finally:
            running.stop()

    def changes(
        self,
        mode: Mode = "changes",
        key: Sequence[str] | None = None,
        configure: bool = True,
        guard: str | None = None,
    ) -> DataFrame:
        """Return the changes of the answer as a streaming DataFrame, to be started with Spark's `writeStream`.

        Spark takes the settings of such a query from the session, so this changes the session's settings for good: the
        RocksDB state store, and one shuffle partition per shard. `start` leaves the session as it was. With
        `configure=False` the session stays as it is, and the query must be started with `settings()`: as the `spark_conf` of
        a flow of Spark Declarative Pipelines, for example.

        `guard` is a folder in which the query is described. If another query, or another plan, is found there, a
        CheckpointError is raised, because Spark itself would go on with state that does not fit. `start` does so beside its
        checkpoint; a pipeline does not say where its checkpoints are, so give a folder in its storage.
        """
        from sash.spark.fingerprint import check_fingerprint
        from sash.spark.session import apply_settings

        for name in self.planned.changing:
            if name.lower() in self.inputs.refreshed:
                raise CatalogError(f"relation {name} has a refresh interval: start the query with start()")
        columns = self.planned.key(key, needed=check_word("output mode", mode, MODES) == "upsert")
        if check_flag("configure", configure):
            apply_settings(self.spark, self._width)
        if guard is not None:
            check_fingerprint(self.spark, check_path("guard", guard), self._fingerprint())
        return self._changes(mode, columns, replace(self.inputs, home=guard))

    def settings(self) -> dict[str, str]:
        """Return the settings of Spark with which the frame of `changes(configure=False)` must be started."""
        from sash.spark.session import settings

        return settings(self._width)

    def start(
        self,
        sink: str | WriteFrame | Sink = "console",
        mode: Mode | None = None,
        trigger: str | None = None,
        checkpoint: str | None = None,
        key: Sequence[str] | None = None,
        name: str | None = None,
        observe: bool = False,
        **options: Any,
    ) -> RunningQuery:
        """Start the query, writing its changes to a sink.

        `sink` is a sink of Sash's, a format of Spark's, or a function. Sash's sinks are "postgres" (`url`, `table`),
        "changelog" (`path`), "delta" (`path`), "iceberg" (`table`), "table" (`table`, one of Spark's catalogs) and "kafka"
        (`kafka.bootstrap.servers`, `topic`). A function is called once per batch with a
        DataFrame that is already computed and the batch's number; after a failure the last batch may be repeated under the
        same number. Sash's sinks, and functions that raise a ConnectionError, a TimeoutError or
        `SinkError(..., transient=True)`, are retried with growing pauses for up to `retry` ("5 minutes"; "0 seconds": not at
        all) before the query fails.

        `mode` is `changes`, `net` or `upsert` (by `key`, or by the key of the query); None is the sink's default. `trigger`
        is None, "available_now", "once" or a period such as "500 milliseconds"; Spark's keywords `availableNow=True`,
        `once=True` and `processingTime=...` also work. With `observe`, statistics of the streams are collected for
        `RunningQuery.statistics`.
        """
        from sash.running import RunningQuery
        from sash.spark.batch_metrics import operator_names
        from sash.spark.checkpoint_lock import lock_checkpoint
        from sash.spark.connect import RemoteWriter, is_connect
        from sash.spark.dataflow import time_type
        from sash.spark.diagnosis import locate_bad_row
        from sash.spark.fingerprint import check_fingerprint, remove_drafts
        from sash.spark.folders import Folder
        from sash.spark.progress import ProgressTracker
        from sash.spark.query_history import QueryHistory
        from sash.spark.session import query_settings
        from sash.spark.sinks import OutputSpec
        from sash.spark.sinks.choice import own_sink
        from sash.spark.sinks.retry import Retries
        from sash.spark.sinks.start import WriteFailure, compute_once, start_query
        from sash.spark.sources.observation import StreamObservation, observe_streams
        from sash.spark.sources.tables import refresh_tables
        from sash.spark.stream_watch import StreamWatch

        given = StartOptions.parse(mode, trigger, options)
        target = own_sink(sink, given.sink)
        if name is not None:
            check_query_name(name)
        check_flag("observe", observe)
        given.trigger.check_heartbeats(self._with_heartbeat)
        if target is None:
            mode = given.mode or "changes"
        else:
            keyed = key is not None or self.planned.key(None, needed=False) is not None
            mode = target.mode(given.mode, keyed)
        columns = self.planned.key(key, needed=mode == "upsert")
        with ExitStack() as undo:
            path, temporary = self._checkpoint_path(checkpoint, name)
            if temporary is not None:
                undo.callback(temporary.remove)
            lock = lock_checkpoint(self.spark, path, name)
            undo.callback(lock.release)
            query = self._with_shards_of(path)
            identity = check_fingerprint(self.spark, path, query._fingerprint())  # noqa: SLF001
            remove_drafts(path)
            inputs, tables = refresh_tables(self.spark, self.inputs, self.planned.changing, self.planned.streams, path)
            inputs = observe_streams(inputs, [self.planned]) if observe else inputs
            inputs = replace(inputs, bounded=given.trigger.word is not None, home=path)
            writer: str | WriteFrame = str(sink)
            retries, failure, of_query = None, WriteFailure(), f" of {name}" if name else ""
            history: QueryHistory | None = None
            if target is not None:
                physical = query.planned.physical
                output = OutputSpec(self.planned.output, time_type(physical, inputs), mode, columns, identity)
                if is_connect(self.spark):
                    writer = RemoteWriter(target, output, f"{target.name}{of_query}")
                else:
                    retries = Retries(f"{target.name}{of_query}", target.policy)
                    opening = Retries(f"{target.name}{of_query}", target.policy.at_start)
                    opened = opening.run(lambda: target.open(output), "connecting")
                    write = retries.writing(opened)
                    if name is not None and self.history is not None:
                        history = QueryHistory(*self.history, name, output, Folder(self.spark, path))
                        undo.callback(history.close)
                        write = history.writing(write)
                    writer = compute_once(write, failure)
            options = {option: resolve(str(value)) for option, value in given.sink.items()}
            with query_settings(self.spark, query._width, path):  # noqa: SLF001
                changes = query._changes(mode, columns, inputs)  # noqa: SLF001
                started = start_query(changes, writer, options, given.trigger, path, name)
            lock.bind(started)
            undo.pop_all()
        observation = StreamObservation([query.planned]) if observe else None
        tracker = ProgressTracker(started, operator_names(query.planned.physical), observation)
        if history is not None:
            tracker.subscribe(history.on_batch)
        for table in tables.values() if given.trigger.word is None else ():
            table.start()
        diagnosis = partial(locate_bad_row, inputs=inputs, planned=query.planned, checkpoint=path)
        watch = StreamWatch({n: s.watched for n in self.planned.streams if (s := inputs.streams.get(n.lower()))})
        running = RunningQuery(
            name, query.planned, tracker, tables, watch, retries, failure, diagnosis, temporary, history
        )
        if self.on_start is not None:
            self.on_start(running, tracker)
        return running

    def live(self, trigger: str | None = None, name: str | None = None) -> LiveAnswer:
        """Start the query and keep its current answer in this process, to be read and watched.

        In a notebook the returned answer shows itself, and is updated while the query runs; in a terminal,
        `query.live().show()` does so. It starts from an empty answer, with a temporary checkpoint.
        """
        from sash.answer import CurrentAnswer
        from sash.live import LiveAnswer
        from sash.spark.connect import refuse_connect

        refuse_connect(self.spark, "live()")
        current = CurrentAnswer(self.schema, self.planned.order)
        running = replace(self, checkpoint=None).start(current, mode="net", trigger=trigger, name=name)
        return LiveAnswer(current, running)

    def __repr__(self) -> str:
        return f"Query({self.planned.sql.strip()!r}, columns: {', '.join(map(str, self.schema))})"

    def _repr_html_(self) -> str:
        columns = facts({column.name: type_name(column.dtype) for column in self.schema})
        return section("Query", code(self.planned.sql.strip()), columns, folded("plan", self.explain()))

    @property
    def _with_heartbeat(self) -> list[str]:
        """The streams, and relations with updates, that have a heartbeat."""
        names = (*self.planned.streams, *self.planned.changing)
        sources = {name: self.inputs.streams.get(name.lower()) for name in names}
        return [name for name, source in sources.items() if source is not None and source.heartbeat is not None]

    @property
    def _width(self) -> int:
        """The number of shards in use: one if no stage is partitioned."""
        return 1 if all(stage.single for stage in self.planned.physical.stages) else self.shards

    def _changes(self, mode: Mode, key: tuple[int, ...] | None, inputs: QueryInputs) -> DataFrame:
        from sash.spark.dataflow import change_frame

        for stream in self.planned.streams:
            if inputs.streams[stream.lower()].rejects is not None:
                raise OptionError(
                    f"the dropped rows of stream {stream} are kept by jobs only: leave out SEPARATE, or start the query in a job"
                )
        return change_frame(self.planned.physical, self.planned.output, inputs, self._width, mode, key)

    def _checkpoint_path(self, checkpoint: str | None, name: str | None) -> tuple[str, TemporaryFolder | None]:
        """Return the path of the checkpoint, and the folder if it is temporary."""
        from sash.spark.temporary import TemporaryFolder

        if checkpoint is not None:
            return check_path("checkpoint", checkpoint), None
        if self.checkpoint is not None:
            own = name or hashlib.sha256(self.planned.sql.encode()).hexdigest()[:16]
            return f"{self.checkpoint.rstrip('/')}/{own}", None
        folder = TemporaryFolder("checkpoint")
        return str(folder.path), folder

    def _with_shards_of(self, checkpoint: str) -> Query:
        """The query with the number of shards of the checkpoint, unless the user chose another."""
        from sash.spark.fingerprint import shards_of

        known = shards_of(self.spark, checkpoint)
        if known in (None, self.shards) or self.shards_chosen:
            return self
        return replace(self, planned=self.planned.with_shards(known), shards=known)

    def _fingerprint(self) -> dict[str, Any]:
        """Return the parts of the query and its options that must not change under a checkpoint."""
        from sash.spark.header import FORMAT

        versions = user_versions(self.planned.optimized)
        return {
            "format": FORMAT,
            "sql": self.planned.sql.strip(),
            "plan": tree(self.planned.optimized),
            "join": self.planned.options.join,
            "tau": self.planned.options.tau,
            "shards": self.shards,
            "strategy": self.planned.physical.strategy,
            "streams": list(self.planned.streams),
            "relations": list(self.planned.changing),
            "heartbeats": self._with_heartbeat,
            **({"functions": versions} if versions else {}),
        }
