"""The backend of `sash validate`: checks statements against the declared columns, and starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sash.durations import microseconds
from sash.plan.catalog import Catalog, update_columns
from sash.plan.options import Trigger
from sash.plan.types import Schema
from sash.planning import Planned, plan_query
from sash.script.backend import QueryOptions, check_relation, check_sink_options
from sash.script.sources import relation_columns, stream_columns
from sash.script.statements import Attach, CreateQuery, CreateRelation, CreateStream, Keep
from sash.window_store.options import IsolationLevel
from sash.window_store.parse import parse_queries
from sash.window_store.store.layout import StoreLayout, layout_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle
    from sash.window_store.snapshot import Snapshot


class DryRunBackend:
    """Checks statements without executing them.

    It starts Spark only for types that Spark alone knows: those of functions that Sash does not implement, and of
    relations without declared columns.
    """

    def __init__(self, start: Callable[[], SparkSession] | None = None) -> None:
        self._catalog = Catalog(spark_type=self._spark_type)
        self._start = start
        self._spark: SparkSession | None = None
        self._with_heartbeat: set[str] = set()
        self._layouts: dict[str, StoreLayout] = {}

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started on first use."""
        from sash.spark.session import embedded_session

        if self._spark is None:
            self._spark = (self._start or embedded_session)()
        return self._spark

    @property
    def started(self) -> bool:
        """Whether a check needed Spark."""
        return self._spark is not None

    def add_stream(self, statement: CreateStream) -> None:
        declaration = statement.declaration
        columns = stream_columns(declaration)
        microseconds(statement.slack, "slack")
        self._check_heartbeat(statement)
        self._catalog.add_stream(
            declaration.name, columns, statement.time, rate=statement.rate, distinct=statement.distinct
        )

    def add_relation(self, statement: CreateRelation) -> None:
        check_relation(statement)
        name = statement.declaration.name
        if statement.refresh is not None:
            microseconds(statement.refresh, "refresh")
        self._check_heartbeat(statement)
        changes = statement.changes or statement.refresh is not None
        self._catalog.add_relation(
            name,
            self._relation_columns(statement),
            key=statement.key,
            retroactive=statement.retroactive,
            changes=changes,
            waits=not changes or statement.heartbeat is not None,
            timed=statement.refresh is None,
            rows=statement.rows,
            distinct=statement.distinct,
        )

    def _relation_columns(self, statement: CreateRelation) -> Schema:
        declaration = statement.declaration
        if statement.changes:
            return update_columns(declaration.name, stream_columns(declaration), statement.time, statement.key)[1]
        columns = relation_columns(declaration)
        if columns is None:
            from sash.spark.sources import static_frame
            from sash.spark.types import read_schema

            columns, _ = read_schema(static_frame(self.spark, declaration))
        return columns

    def drop(self, name: str) -> None:
        self._catalog.drop(name)

    def plan(self, sql: str, options: QueryOptions) -> Planned:
        return plan_query(sql, self._catalog, options=options.options)

    def query(self, sql: str, options: QueryOptions) -> Query:
        raise AssertionError("a dry run makes no query that could be started")

    def analyze(self, sql: str, options: QueryOptions) -> str:
        return self.plan(sql, options).explain()

    def start(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> RunningQuery | None:
        from sash.spark.sinks import SINKS

        planned = self.plan(statement.query.sql, options)
        check_sink_options(statement)
        key = planned.key(statement.key, needed=statement.key is not None)
        mode = statement.mode
        if statement.sink in SINKS:
            mode = SINKS[statement.sink](statement.options).mode(mode, keyed=key is not None)
        if mode == "upsert":
            planned.key(statement.key, needed=True)
        inputs = (*planned.streams, *planned.changing)
        Trigger.parse(trigger).check_heartbeats([name for name in inputs if name.lower() in self._with_heartbeat])
        return None

    def keep(self, statement: Keep, trigger: str | None) -> StreamingHandle | None:
        entry = self._catalog.streams[statement.name.lower()]
        self._layouts[entry.name.lower()] = layout_of(
            entry.name, entry.schema, entry.time, statement.window, statement.every, statement.retain
        )
        Trigger.parse(trigger).check_heartbeats([entry.name] if entry.name.lower() in self._with_heartbeat else [])
        return None

    def attach(self, statement: Attach) -> None:
        self._layouts[statement.name.lower()] = StoreLayout.load(Path(statement.path))

    def detach(self, name: str) -> None:
        self._layouts.pop(name.lower(), None)

    def explain_snapshot(self, sql: str, isolation: IsolationLevel) -> str:
        parse_queries([sql], self._layouts, self._catalog.streams)
        return sql

    def snapshot(self, sql: str, isolation: IsolationLevel) -> Snapshot | None:
        parse_queries([sql], self._layouts, self._catalog.streams)
        return None

    def configure(self, name: str, value: str) -> None:
        """Do nothing: only Spark can check its settings."""

    def _check_heartbeat(self, statement: CreateStream | CreateRelation) -> None:
        if statement.heartbeat is not None:
            microseconds(statement.heartbeat, "heartbeat")
            self._with_heartbeat.add(statement.declaration.name.lower())

    def _spark_type(self, name: str, sql: str) -> pa.DataType | None:
        from sash.spark.sources import struct
        from sash.spark.types import expression_type

        entry = self._catalog.find(name)
        assert entry is not None
        return expression_type(self.spark.createDataFrame([], struct(entry.schema)), sql)
