"""What a session stands on: an engine, where things are real, or paper, where a script is only checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from sash.durations import microseconds
from sash.errors import CatalogError
from sash.plan.catalog import OP, Catalog, RelationEntry, missing_op, stream_entry, time_column
from sash.plan.options import Options
from sash.plan.types import Schema
from sash.planning import Planned, plan_query
from sash.rows import key_columns
from sash.sql.sources import relation_columns, stream_columns
from sash.sql.statements import CreateQuery, CreateRelation, CreateStream, Keep, Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.engine import Engine
    from sash.query import Query
    from sash.spark.sinks import Running


class Ground(Protocol):
    """What differs between doing and checking."""

    @property
    def catalog(self) -> Catalog:
        """The streams and relations that there are."""

    def add_stream(self, statement: CreateStream) -> None:
        """Register a stream."""

    def add_relation(self, statement: CreateRelation) -> None:
        """Register a relation."""

    def drop(self, name: str) -> None:
        """Forget a stream or relation."""

    def plan(self, sql: str, strategy: str) -> Planned:
        """Plan a query."""

    def query(self, sql: str, strategy: str) -> Query:
        """A query that can be started or asked."""

    def start(self, statement: CreateQuery, strategy: str, trigger: str | None) -> Running | None:
        """Start a standing query."""

    def keep(self, statement: Keep, trigger: str | None) -> Running | None:
        """Keep the window of a stream."""

    def configure(self, name: str, value: str) -> None:
        """Set one of Spark's settings."""


def check_options(statement: CreateQuery) -> dict[str, Value]:
    """A sink's options; what has a clause of its own is none."""
    for name in statement.options:
        if name.lower() in ("mode", "key", "trigger", "strategy", "name", "sink"):
            raise CatalogError(f"{name} is not an option of a sink: write {name.upper()} after the options")
    return dict(statement.options)


class OnEngine:
    """The statements have effect."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    def catalog(self) -> Catalog:
        return self.engine.catalog

    def add_stream(self, statement: CreateStream) -> None:
        from sash.spark.sources import stream_frame

        given = statement.input
        time = statement.time or time_column(given.name, stream_columns(given))
        frame = stream_frame(self.engine.spark, given)
        self.engine.stream(given.name, frame, time, statement.slack, statement.heartbeat, statement.bad_rows)

    def add_relation(self, statement: CreateRelation) -> None:
        from sash.spark.sources import static_frame, stream_frame

        given = statement.input
        if not statement.changes:
            frame = static_frame(self.engine.spark, given)
            self.engine.relation(given.name, frame, statement.key, statement.retroactive)
            return
        time = time_column(given.name, stream_columns(given), "relation")
        updates = stream_frame(self.engine.spark, given)
        self.engine.relation(given.name, updates, statement.key, statement.retroactive, changes=True, time=time)

    def drop(self, name: str) -> None:
        self.engine.drop(name)

    def plan(self, sql: str, strategy: str) -> Planned:
        return self.query(sql, strategy).planned

    def query(self, sql: str, strategy: str) -> Query:
        return self.engine.sql(sql, strategy=strategy)

    def start(self, statement: CreateQuery, strategy: str, trigger: str | None) -> Running | None:
        query = self.query(statement.query.sql, strategy)
        options: dict[str, Any] = check_options(statement)
        mode: Any = statement.mode
        return query.start(
            statement.sink, mode=mode, trigger=trigger, key=statement.key, name=statement.name, **options
        )

    def keep(self, statement: Keep, trigger: str | None) -> Running | None:
        window: Any = statement.window
        every: Any = statement.every
        return self.engine.keep(
            statement.name, window, every, path=statement.path, retain=statement.retain, trigger=trigger
        )

    def configure(self, name: str, value: str) -> None:
        self.engine.spark.conf.set(name, value)


class OnPaper:
    """The statements are checked against declared columns. Spark is started only for what nobody but Spark can tell:
    functions that Sash has not, and relations whose columns are not declared."""

    def __init__(self, start: Callable[[], SparkSession] | None = None) -> None:
        self._catalog = Catalog(native_type=self._native_type)
        self._start = start
        self._spark: SparkSession | None = None
        self._beating: set[str] = set()

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
        microseconds(statement.slack, "slack")
        if statement.heartbeat is not None:
            microseconds(statement.heartbeat, "heartbeat")
            self._beating.add(given.name.lower())
        self._claim(given.name)
        self._catalog.streams[given.name.lower()] = entry

    def add_relation(self, statement: CreateRelation) -> None:
        given = statement.input
        self._claim(given.name)
        columns = self._updated_columns(statement) if statement.changes else relation_columns(given)
        if columns is None:
            from sash.spark.sources import static_frame
            from sash.spark.types import read_schema

            columns, _ = read_schema(static_frame(self.spark, given))
        key = key_columns(given.name, columns, statement.key)
        entry = RelationEntry(
            given.name, columns, statement.retroactive, statement.changes, key, waits=not statement.changes
        )
        self._catalog.relations[given.name.lower()] = entry

    @staticmethod
    def _updated_columns(statement: CreateRelation) -> Schema:
        """The columns of a relation whose updates come with their time and with what each does."""
        given = statement.input
        columns = stream_columns(given)
        time = time_column(given.name, columns, "relation")
        if statement.key is None and OP not in {field.name for field in columns}:
            raise CatalogError(missing_op(given.name))
        return tuple(field for field in columns if field.name not in (time, OP))

    def drop(self, name: str) -> None:
        if name.lower() not in self._catalog.streams and name.lower() not in self._catalog.relations:
            raise CatalogError(f"there is no stream or relation {name}")
        self._catalog.streams.pop(name.lower(), None)
        self._catalog.relations.pop(name.lower(), None)

    def plan(self, sql: str, strategy: str) -> Planned:
        return plan_query(sql, self._catalog, options=Options(strategy))

    def query(self, sql: str, strategy: str) -> Query:
        raise AssertionError("on paper no query is run")

    def start(self, statement: CreateQuery, strategy: str, trigger: str | None) -> Running | None:
        from sash.spark.sinks import check_trigger
        from sash.spark.stores import STORES

        planned = self.plan(statement.query.sql, strategy)
        check_options(statement)
        key = planned.key(statement.key, needed=statement.key is not None)
        mode: Any = statement.mode
        if statement.sink in STORES:
            mode = STORES[statement.sink](statement.options).mode(mode, keyed=key is not None)
        if mode == "upsert":
            planned.key(statement.key, needed=True)
        check_trigger(trigger, [name for name in planned.streams if name.lower() in self._beating])
        return None

    def keep(self, statement: Keep, trigger: str | None) -> Running | None:
        from sash.spark.keeping import layout_of
        from sash.spark.sinks import check_trigger

        entry = self._catalog.streams[statement.name.lower()]
        window: Any = statement.window
        every: Any = statement.every
        layout_of(entry.name, entry.schema, entry.time, window, every, statement.retain)
        check_trigger(trigger, [entry.name] if entry.name.lower() in self._beating else [])
        return None

    def configure(self, name: str, value: str) -> None:
        """Nothing to do: only Spark knows its settings."""

    def _claim(self, name: str) -> None:
        if name.lower() in self._catalog.streams or name.lower() in self._catalog.relations:
            raise CatalogError(f"{name} is already registered")

    def _native_type(self, name: str, sql: str) -> pa.DataType | None:
        from sash.spark.types import expression_type

        return expression_type(self._empty(name), sql)

    def _empty(self, name: str) -> DataFrame:
        from sash.spark.sources import struct

        entry = self._catalog.streams.get(name.lower()) or self._catalog.relations[name.lower()]
        schema: Schema = entry.schema
        return self.spark.createDataFrame([], struct(schema))
