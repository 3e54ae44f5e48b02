"""The ground on which a script is only checked: nothing is started, and columns are what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.durations import microseconds
from sash.errors import CatalogError
from sash.plan.catalog import OP, Catalog, RelationEntry, missing_op, stream_entry, time_column, time_field
from sash.plan.options import Trigger
from sash.plan.statistics import declared
from sash.plan.types import Schema
from sash.planning import Planned, plan_query
from sash.rows import key_columns
from sash.script.backend import How, check_options, check_relation
from sash.script.sources import relation_columns, stream_columns
from sash.script.statements import Attach, CreateQuery, CreateRelation, CreateStream, Keep
from sash.window_store.parse import parse_queries
from sash.window_store.store.layout import StoreLayout, layout_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.query import Query
    from sash.running import RunningQuery
    from sash.spark.handle import StreamingHandle
    from sash.window_store.snapshot import Snapshot as Answer


class OnPaper:
    """The statements are checked against declared columns. Spark is started only for what nobody but Spark can tell:
    functions that Sash has not, and relations whose columns are not declared."""

    def __init__(self, start: Callable[[], SparkSession] | None = None) -> None:
        self._catalog = Catalog(spark_type=self._spark_type)
        self._start = start
        self._spark: SparkSession | None = None
        self._beating: set[str] = set()
        self._layouts: dict[str, StoreLayout] = {}

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    @property
    def spark(self) -> SparkSession:
        """A session, when there is no way round it."""
        from sash.spark.session import embedded_session

        if self._spark is None:
            self._spark = (self._start or embedded_session)()
        return self._spark

    @property
    def started(self) -> bool:
        """Whether Spark was needed."""
        return self._spark is not None

    def add_stream(self, statement: CreateStream) -> None:
        given = statement.input
        columns = stream_columns(given)
        entry = stream_entry(given.name, columns, statement.time or time_column(given.name, columns))
        known = declared(given.name, _names(columns), rate=statement.rate, distinct=statement.distinct)
        microseconds(statement.slack, "slack")
        self._claim(given.name)
        self._beat(given.name, statement.heartbeat)
        self._catalog.streams[given.name.lower()] = replace(entry, statistics=known)

    def add_relation(self, statement: CreateRelation) -> None:
        check_relation(statement)
        given = statement.input
        self._claim(given.name)
        columns = self._updated_columns(statement) if statement.changes else relation_columns(given)
        if columns is None:
            from sash.spark.sources import static_frame
            from sash.spark.types import read_schema

            columns, _ = read_schema(static_frame(self.spark, given))
        if statement.refresh is not None:
            microseconds(statement.refresh, "refresh")
        self._beat(given.name, statement.heartbeat)
        changes = statement.changes or statement.refresh is not None
        self._catalog.relations[given.name.lower()] = RelationEntry(
            given.name,
            columns,
            statement.retroactive,
            changes,
            key_columns(given.name, columns, statement.key),
            waits=not changes or statement.heartbeat is not None,
            timed=statement.refresh is None,
            statistics=declared(given.name, _names(columns), rows=statement.rows, distinct=statement.distinct),
        )

    @staticmethod
    def _updated_columns(statement: CreateRelation) -> Schema:
        """The columns of a relation whose updates come with their time and with what each does."""
        given = statement.input
        columns = stream_columns(given)
        time = time_field(
            f"relation {given.name}", columns, statement.time or time_column(given.name, columns, "relation")
        )
        if statement.key is None and OP not in {field.name for field in columns}:
            raise CatalogError(missing_op(given.name))
        return tuple(field for field in columns if field.name not in (time, OP))

    def drop(self, name: str) -> None:
        if name.lower() not in self._catalog.streams and name.lower() not in self._catalog.relations:
            raise CatalogError(f"there is no stream or relation {name}")
        self._catalog.streams.pop(name.lower(), None)
        self._catalog.relations.pop(name.lower(), None)

    def plan(self, sql: str, how: How) -> Planned:
        return plan_query(sql, self._catalog, options=how.options)

    def query(self, sql: str, how: How) -> Query:
        raise AssertionError("on paper no query is run")

    def analyze(self, sql: str, how: How) -> str:
        return self.plan(sql, how).explain()

    def start(self, statement: CreateQuery, how: How, trigger: str | None) -> RunningQuery | None:
        from sash.spark.sinks import SINKS

        planned = self.plan(statement.query.sql, how)
        check_options(statement)
        key = planned.key(statement.key, needed=statement.key is not None)
        mode: Any = statement.mode
        if statement.sink in SINKS:
            mode = SINKS[statement.sink](statement.options).mode(mode, keyed=key is not None)
        if mode == "upsert":
            planned.key(statement.key, needed=True)
        Trigger.parse(trigger).check_heartbeats(
            [name for name in (*planned.streams, *planned.changing) if name.lower() in self._beating]
        )
        return None

    def keep(self, statement: Keep, trigger: str | None) -> StreamingHandle | None:

        entry = self._catalog.streams[statement.name.lower()]
        window: Any = statement.window
        every: Any = statement.every
        layout = layout_of(entry.name, entry.schema, entry.time, window, every, statement.retain)
        self._layouts[entry.name.lower()] = layout
        Trigger.parse(trigger).check_heartbeats([entry.name] if entry.name.lower() in self._beating else [])
        return None

    def attach(self, statement: Attach) -> None:
        self._layouts[statement.name.lower()] = StoreLayout.load(Path(statement.path))

    def detach(self, name: str) -> None:
        self._layouts.pop(name.lower(), None)

    def explain_snapshot(self, sql: str, isolation: str) -> str:
        parse_queries([sql], self._layouts, self._catalog.streams)
        return sql

    def snapshot(self, sql: str, isolation: str) -> Answer | None:
        parse_queries([sql], self._layouts, self._catalog.streams)
        return None

    def configure(self, name: str, value: str) -> None:
        """Nothing to do: only Spark knows its settings."""

    def _beat(self, name: str, heartbeat: str | None) -> None:
        if heartbeat is not None:
            microseconds(heartbeat, "heartbeat")
            self._beating.add(name.lower())

    def _claim(self, name: str) -> None:
        if name.lower() in self._catalog.streams or name.lower() in self._catalog.relations:
            raise CatalogError(f"{name} is already registered")

    def _spark_type(self, name: str, sql: str) -> pa.DataType | None:
        from sash.spark.types import expression_type

        return expression_type(self._empty(name), sql)

    def _empty(self, name: str) -> DataFrame:
        from sash.spark.sources import struct

        entry = self._catalog.streams.get(name.lower()) or self._catalog.relations[name.lower()]
        schema: Schema = entry.schema
        return self.spark.createDataFrame([], struct(schema))


def _names(schema: Schema) -> tuple[str, ...]:
    return tuple(field.name for field in schema)
