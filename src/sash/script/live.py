"""The backend that executes statements on an engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sash.plan.catalog import Catalog, time_column
from sash.planning import Planned
from sash.script.backend import QueryOptions, check_relation, check_sink_options
from sash.script.sources import stream_columns
from sash.script.statements import Attach, CreateQuery, CreateRelation, CreateStream, Keep
from sash.window_store.options import IsolationLevel, SnapshotOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.engine import Engine
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle
    from sash.spark.kept_window import KeptWindow
    from sash.window_store.snapshot import Snapshot

_POLL = 0.1


class LiveBackend:
    """Executes statements on an engine.

    A snapshot of a window that has just been started waits up to `patience` seconds for the window's first update.
    """

    def __init__(self, engine: Engine, patience: float = 30.0) -> None:
        self.engine = engine
        self._patience = patience
        self._kept: dict[str, KeptWindow] = {}

    @property
    def catalog(self) -> Catalog:
        return self.engine.catalog

    def add_stream(self, statement: CreateStream) -> None:
        from sash.spark.sources import stream_frame

        declaration = statement.declaration
        self.engine.stream(
            declaration.name,
            stream_frame(self.engine.spark, declaration),
            time=time_column(f"stream {declaration.name}", stream_columns(declaration), statement.time),
            slack=statement.slack,
            heartbeat=statement.heartbeat,
            bad_rows=statement.bad_rows,
            rate=statement.rate,
            distinct=statement.distinct,
        )

    def add_relation(self, statement: CreateRelation) -> None:
        from sash.spark.sources import static_frame, stream_frame

        check_relation(statement)
        declaration, spark = statement.declaration, self.engine.spark
        name, time = declaration.name, "ts"
        source: DataFrame | Callable[[], DataFrame]
        if statement.changes:
            time = time_column(f"relation {name}", stream_columns(declaration), statement.time)
            source = stream_frame(spark, declaration)
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

    def drop(self, name: str) -> None:
        self.engine.drop(name)

    def plan(self, sql: str, options: QueryOptions) -> Planned:
        return self.query(sql, options).planned

    def query(self, sql: str, options: QueryOptions) -> Query:
        return self.engine.sql(sql, strategy=options.strategy, join=options.join, tau=options.tau)

    def analyze(self, sql: str, options: QueryOptions) -> str:
        return self.query(sql, options).explain(analyze=True)

    def start(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> RunningQuery | None:
        query = self.query(statement.query.sql, options)
        sink_options: dict[str, Any] = check_sink_options(statement)
        return query.start(
            statement.sink, mode=statement.mode, trigger=trigger, key=statement.key, name=statement.name, **sink_options
        )

    def keep(self, statement: Keep, trigger: str | None) -> StreamingHandle | None:
        kept = self.engine.keep(
            statement.name,
            statement.window,
            statement.every,
            path=statement.path,
            retain=statement.retain,
            trigger=trigger,
        )
        self._kept[statement.name.lower()] = kept
        return kept

    def attach(self, statement: Attach) -> None:
        self.engine.attach(statement.name, statement.path)

    def detach(self, name: str) -> None:
        self.engine.windows.detach(name)

    def explain_snapshot(self, sql: str, isolation: IsolationLevel) -> str:
        return self.engine.windows.plan(sql, SnapshotOptions(isolation)).explain()

    def snapshot(self, sql: str, isolation: IsolationLevel) -> Snapshot | None:
        live = self.engine.windows.plan(sql, SnapshotOptions(isolation)).window
        keeping = self._kept.get(live.layout.name.lower())
        until = time.monotonic() + self._patience
        while keeping is not None and keeping.active and not live.manifest.live and time.monotonic() < until:
            time.sleep(_POLL)
        return self.engine.snapshot(sql, isolation)

    def configure(self, name: str, value: str) -> None:
        from sash.spark.session import set_option

        set_option(self.engine.spark, name, value)
