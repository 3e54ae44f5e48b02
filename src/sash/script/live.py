"""The ground on which statements have effect: an engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sash.plan.catalog import Catalog, time_column
from sash.planning import Planned
from sash.script.backend import How, check_options, check_relation
from sash.script.sources import stream_columns
from sash.script.statements import Attach, CreateQuery, CreateRelation, CreateStream, Keep
from sash.window_store.options import SnapshotOptions

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle
    from sash.spark.kept_window import KeptWindow
    from sash.window_store.snapshot import Snapshot as Answer

_POLL = 0.1


class OnEngine:
    """The statements have effect. A snapshot waits so many seconds for the first update of a window that is kept here."""

    def __init__(self, engine: Engine, patience: float = 30.0) -> None:
        self.engine = engine
        self._patience = patience
        self._kept: dict[str, KeptWindow] = {}

    @property
    def catalog(self) -> Catalog:
        return self.engine.catalog

    def add_stream(self, statement: CreateStream) -> None:
        from sash.spark.sources import stream_frame

        given = statement.input
        self.engine.stream(
            given.name,
            stream_frame(self.engine.spark, given),
            time=statement.time or time_column(given.name, stream_columns(given)),
            slack=statement.slack,
            heartbeat=statement.heartbeat,
            bad_rows=statement.bad_rows,
            rate=statement.rate,
            distinct=statement.distinct,
        )

    def add_relation(self, statement: CreateRelation) -> None:
        from sash.spark.sources import static_frame, stream_frame

        check_relation(statement)
        given, spark = statement.input, self.engine.spark
        known: dict[str, Any] = {
            "key": statement.key,
            "retroactive": statement.retroactive,
            "rows": statement.rows,
            "distinct": statement.distinct,
        }
        if statement.changes:
            self.engine.relation(
                given.name,
                stream_frame(spark, given),
                changes=True,
                time=statement.time or time_column(given.name, stream_columns(given), "relation"),
                heartbeat=statement.heartbeat,
                bad_rows=statement.bad_rows,
                **known,
            )
        elif statement.refresh is not None:
            self.engine.relation(
                given.name, lambda: static_frame(spark, given), changes=True, refresh=statement.refresh, **known
            )
        else:
            self.engine.relation(given.name, static_frame(spark, given), **known)

    def drop(self, name: str) -> None:
        self.engine.drop(name)

    def plan(self, sql: str, how: How) -> Planned:
        return self.query(sql, how).planned

    def query(self, sql: str, how: How) -> Query:
        return self.engine.sql(sql, strategy=how.strategy, join=how.join, tau=how.tau)

    def analyze(self, sql: str, how: How) -> str:
        return self.query(sql, how).explain(analyze=True)

    def start(self, statement: CreateQuery, how: How, trigger: str | None) -> RunningQuery | None:
        query = self.query(statement.query.sql, how)
        options: dict[str, Any] = check_options(statement)
        mode: Any = statement.mode
        return query.start(
            statement.sink, mode=mode, trigger=trigger, key=statement.key, name=statement.name, **options
        )

    def keep(self, statement: Keep, trigger: str | None) -> StreamingHandle | None:
        window: Any = statement.window
        every: Any = statement.every
        kept = self.engine.keep(
            statement.name, window, every, path=statement.path, retain=statement.retain, trigger=trigger
        )
        self._kept[statement.name.lower()] = kept
        return kept

    def attach(self, statement: Attach) -> None:
        self.engine.attach(statement.name, statement.path)

    def detach(self, name: str) -> None:
        self.engine.windows.detach(name)

    def explain_snapshot(self, sql: str, isolation: str) -> str:
        level: Any = isolation
        return self.engine.windows.plan(sql, SnapshotOptions(level)).explain()

    def snapshot(self, sql: str, isolation: str) -> Answer | None:
        """A window that was just begun has nothing complete yet: it is given some time."""
        level: Any = isolation
        live = self.engine.windows.plan(sql, SnapshotOptions(level)).window
        keeping = self._kept.get(live.layout.name.lower())
        until = time.monotonic() + self._patience
        while keeping is not None and keeping.active and not live.manifest.live and time.monotonic() < until:
            time.sleep(_POLL)
        return self.engine.snapshot(sql, level)

    def configure(self, name: str, value: str) -> None:
        self.engine.spark.conf.set(name, value)
