"""The backend that executes statements on an engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from sash.plan.catalog import Catalog, time_column
from sash.planning import Planned
from sash.script.backend import QueryHandle, QueryOptions, WindowHandle, check_relation
from sash.script.live_jobs import SessionJobs
from sash.script.sources import PostgresOptions, bounded, stream_columns
from sash.script.statements import Attach, CreateFunction, CreateQuery, CreateRelation, CreateStream, JobAction, Keep
from sash.script.user_code import loaded_code
from sash.secret_references import resolve
from sash.user_library import add_aggregate, add_function
from sash.window_store.options import IsolationLevel, SnapshotOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.engine import Engine
    from sash.query import Query
    from sash.running_job import RunningJob
    from sash.spark.handle import StreamingHandle
    from sash.window_store.snapshot import Snapshot

_POLL = 0.1


class LiveBackend:
    """Executes statements on an engine.

    A snapshot of a window that has just been started waits up to `patience` seconds for the window's first update.
    """

    def __init__(self, engine: Engine, patience: float = 30.0) -> None:
        self.engine = engine
        self._patience = patience
        self.session_jobs = SessionJobs(engine)

    @property
    def catalog(self) -> Catalog:
        return self.engine.catalog

    def add_stream(self, statement: CreateStream) -> None:
        from sash.spark.sources import stream_frame, stream_rereading

        rows = statement.max_rows_per_batch
        declaration = bounded(statement.declaration, rows)
        kept = statement.bad_rows_into is not None or statement.late_rows_into is not None
        self.engine.stream(
            declaration.name,
            stream_frame(self.engine.spark, declaration, whole=True, kept=kept),
            time=time_column(f"stream {declaration.name}", stream_columns(declaration), statement.time),
            slack=statement.slack,
            heartbeat=statement.heartbeat,
            bad_rows=statement.bad_rows,
            rate=statement.rate,
            distinct=statement.distinct,
            history=stream_rereading(self.engine.spark, statement.declaration),
            unbounded=statement.unbounded,
            partition_by=statement.partition_by,
            idle_after=statement.idle_after,
            bad_rows_into=statement.bad_rows_into,
            late_rows_into=statement.late_rows_into,
            max_bad_rows=statement.max_bad_rows,
            max_jump=statement.max_jump,
            max_rows_per_batch=None if declaration.source == "kafka" else rows,
            peak=statement.peak,
        )

    def add_relation(self, statement: CreateRelation) -> None:
        from sash.spark.sources import PostgresRelation, Updates, static_frame, stream_frame

        check_relation(statement)
        declaration, spark = statement.declaration, self.engine.spark
        name, time = declaration.name, "ts"
        source: DataFrame | Callable[[], DataFrame] | PostgresRelation
        if statement.changes:
            time = time_column(f"relation {name}", stream_columns(declaration, updates=True), statement.time)
            source = stream_frame(spark, declaration, updates=Updates(time, statement.key or ()))
        elif statement.refresh is not None and declaration.source == "postgres":
            source = PostgresRelation(name, PostgresOptions.of(declaration), declaration.columns)
        elif statement.refresh is not None:
            source = partial(static_frame, spark, declaration)
        else:
            source = static_frame(spark, declaration)
        self.engine.relation(
            name,
            source,
            key=statement.key,
            retroactive=statement.retroactive,
            changes=statement.changes,
            time=time,
            heartbeat=statement.heartbeat,
            refresh=statement.refresh,
            bad_rows=statement.bad_rows,
            rows=statement.rows,
            distinct=statement.distinct,
        )

    def add_function(self, statement: CreateFunction) -> None:
        from sash.spark.packing import pack_by_value

        code = loaded_code(statement)
        add = add_aggregate if statement.aggregate else add_function
        add(self.engine.catalog, statement.name, code, statement.returns, statement.version, pack_by_value)

    def drop(self, name: str) -> None:
        self.engine.drop(name)

    def plan(self, sql: str, options: QueryOptions) -> Planned:
        return self.query(sql, options).planned

    def query(self, sql: str, options: QueryOptions) -> Query:
        return self.engine.sql(sql, **vars(options))

    def analyze(self, sql: str, options: QueryOptions) -> str:
        return self.query(sql, options).explain(analyze=True)

    def add_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        self.session_jobs.add(statement, options, trigger)

    def alter_query(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        self.session_jobs.alter(statement, options, trigger)

    def drop_query(self, name: str) -> None:
        self.session_jobs.drop(name)

    def resume_query(self, name: str) -> None:
        self.session_jobs.resume(name)

    @property
    def paused(self) -> bool:
        return self.session_jobs.paused

    def pause(self) -> None:
        self.session_jobs.pause()

    def unpause(self) -> None:
        self.session_jobs.unpause()

    def control_job(self, action: JobAction, name: str) -> str:
        from sash.script.other_jobs import control_other

        own = self.jobs().get(name)
        if own is None:
            return control_other(action, name)
        match action:
            case "STOP":
                own.finish()
            case "PAUSE":
                own.pause()
            case "RESUME":
                own.resume()
        return f"job {name} is {own.state}"

    def launch(self) -> None:
        self.session_jobs.launch()

    def queries(self) -> dict[str, CreateQuery]:
        return self.session_jobs.queries

    def windows(self) -> dict[str, Keep]:
        return self.session_jobs.windows

    def running(self, name: str) -> QueryHandle | None:
        return self.session_jobs.running(name)

    def job_of(self, name: str) -> str | None:
        return self.session_jobs.job_of(name)

    def jobs(self) -> Mapping[str, RunningJob]:
        return self.session_jobs.started

    def separate(self) -> Mapping[str, StreamingHandle]:
        return self.session_jobs.separate

    def explain_job(self) -> str:
        return self.session_jobs.explain()

    def keep(self, statement: Keep, trigger: str | None) -> None:
        self.session_jobs.keep(statement, trigger)

    def change_every(self, statement: Keep) -> None:
        self.session_jobs.change_every(statement)

    def keeping(self, name: str) -> WindowHandle | None:
        return self.session_jobs.keeping(name)

    def attach(self, statement: Attach) -> None:
        self.engine.attach(statement.name, statement.path)

    def drop_window(self, name: str) -> None:
        if not self.session_jobs.drop_window(name):
            self.engine.windows.detach(name)

    def adopt(self, before: LiveBackend) -> None:
        """Take over what the backend of an earlier script runs; `launch` then applies the differences."""
        self.session_jobs.adopt(before.session_jobs)

    def explain_snapshot(self, sql: str, isolation: IsolationLevel) -> str:
        return self.engine.windows.plan(sql, SnapshotOptions(isolation)).explain()

    def snapshot(self, sql: str, isolation: IsolationLevel) -> Snapshot | None:
        live = self.engine.windows.plan(sql, SnapshotOptions(isolation)).window
        keeping = self.session_jobs.keeping(live.layout.name)
        until = time.monotonic() + self._patience
        while keeping is not None and keeping.active and not live.manifest.live and time.monotonic() < until:
            time.sleep(_POLL)
        return self.engine.snapshot(sql, isolation)

    def configure(self, name: str, value: str) -> None:
        from sash.spark.session import set_option

        set_option(self.engine.spark, name, resolve(value))
