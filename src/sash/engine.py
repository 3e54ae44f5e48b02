"""The engine: streams and relations by name, and queries over them, on a Spark session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sash.durations import microseconds
from sash.errors import CatalogError, UnknownNameError
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.options import Options
from sash.plan.types import BIGINT, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, Schema, type_name
from sash.planning import plan_query
from sash.query import Query
from sash.rows import key_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sash.spark.plan import Source
    from sash.spark.reread import Table

_TIMES = (TIMESTAMP, TIMESTAMP_NTZ, DATE, BIGINT, INT)


class Engine:
    """Runs standing queries.

    `spark` is the session to run on (None: an embedded local one), `checkpoint` a directory under which every query
    keeps its own, `shards` the number of parallel parts of a query (None: one per core).
    """

    def __init__(
        self, spark: SparkSession | None = None, checkpoint: str | None = None, shards: int | None = None
    ) -> None:
        from sash.spark.session import default_shards, embedded_session

        if shards is not None and shards < 1:
            raise CatalogError(f"shards must be at least 1, not {shards}")
        self.spark = embedded_session() if spark is None else spark
        self.shards = shards or default_shards(self.spark)
        self.checkpoint = checkpoint
        self._catalog = Catalog(native_type=self._native_type)
        self._streams: dict[str, Source] = {}
        self._relations: dict[str, DataFrame] = {}
        self._updates: dict[str, Source] = {}
        self._tables: dict[str, Table] = {}
        self._refused: dict[str, dict[str, str]] = {}

    def stream(
        self,
        name: str,
        df: DataFrame,
        time: str = "ts",
        slack: str = "0 seconds",
        heartbeat: str | None = None,
        bad_rows: Literal["fail", "drop"] = "fail",
    ) -> None:
        """Register a streaming DataFrame under a name.

        `time` is the column with a row's time: a timestamp, a date, or microseconds as BIGINT. `slack` is how long rows
        are held back so that late ones fit in. With a `heartbeat` the wall clock moves the stream's time on while no
        row comes. Rows without a time fail the query, or are dropped and counted.
        """
        from sash.spark.plan import Source
        from sash.spark.types import read_schema

        self._claim(name)
        if not df.isStreaming:
            raise CatalogError(
                f"{name} is not a streaming DataFrame: read it with spark.readStream, or register it as a relation"
            )
        if bad_rows not in ("fail", "drop"):
            raise CatalogError(f'bad_rows must be "fail" or "drop", not {bad_rows!r}')
        schema, refused = read_schema(df)
        found = self._time_column(f"stream {name}", schema, time)
        beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
        source = Source(df, microseconds(slack, "slack"), beat, bad_rows == "drop")
        self._refused[name.lower()] = refused
        self._streams[name.lower()] = source
        self._catalog.streams[name.lower()] = StreamEntry(name, schema, found)

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
        """
        self._claim(name)
        if not changes:
            if callable(df) or df.isStreaming or refresh is not None or heartbeat is not None:
                raise CatalogError(f"relation {name} is a stream, or read again: then it changes, so say changes=True")
            self._register_table(name, df, key, retroactive)
        elif not callable(df) and df.isStreaming:
            if refresh is not None:
                raise CatalogError(f"relation {name} is a stream of updates: there is nothing to refresh")
            self._register_updates(name, df, key, retroactive, time, heartbeat, bad_rows)
        else:
            if refresh is None or heartbeat is not None:
                raise CatalogError(
                    f"relation {name} changes, but is not a stream: say how often it is read again, as in "
                    'refresh="10 seconds", without a heartbeat; or register a stream of updates'
                )
            self._register_reread(name, df, key, retroactive, refresh)

    def _register_table(self, name: str, df: DataFrame, key: str | Sequence[str] | None, retroactive: bool) -> None:
        from sash.spark.reread import refuse_duplicate_keys
        from sash.spark.types import read_schema

        schema, refused = read_schema(df)
        columns = key_columns(name, schema, key)
        if columns is not None:
            refuse_duplicate_keys(name, df, [schema[column].name for column in columns])
        self._refused[name.lower()] = refused
        self._relations[name.lower()] = df
        self._catalog.relations[name.lower()] = RelationEntry(name, schema, retroactive, key=columns)

    def _register_updates(
        self,
        name: str,
        df: DataFrame,
        key: str | Sequence[str] | None,
        retroactive: bool,
        time: str,
        heartbeat: str | None,
        bad_rows: str,
    ) -> None:
        from sash.spark.plan import Source
        from sash.spark.types import read_schema
        from sash.spark.updates import OP

        all_columns, refused = read_schema(df)
        found = self._time_column(f"relation {name}", all_columns, time)
        schema = tuple(field for field in all_columns if field.name not in (found, OP))
        if key is None and OP not in df.columns:
            raise CatalogError(
                f"the updates of relation {name} have no column {OP} to say '+' or '-': add it, or name a key, by which each "
                "update replaces"
            )
        if bad_rows not in ("fail", "drop"):
            raise CatalogError(f'bad_rows must be "fail" or "drop", not {bad_rows!r}')
        beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
        columns = key_columns(name, schema, key)
        self._refused[name.lower()] = refused
        self._updates[name.lower()] = Source(df, 0, beat, bad_rows == "drop", found)
        self._catalog.relations[name.lower()] = RelationEntry(
            name, schema, retroactive, changes=True, key=columns, waits=beat is not None
        )

    def _register_reread(
        self,
        name: str,
        df: DataFrame | Callable[[], DataFrame],
        key: str | Sequence[str] | None,
        retroactive: bool,
        refresh: str,
    ) -> None:
        from sash.spark.reread import Table
        from sash.spark.types import read_schema

        read = df if callable(df) else lambda: df
        schema, refused = read_schema(read())
        columns = key_columns(name, schema, key)
        if columns is None:
            raise CatalogError(f"relation {name} is read again, and what differs is found by key: name its key=...")
        self._refused[name.lower()] = refused
        self._tables[name.lower()] = Table(name, read, schema, columns, microseconds(refresh, "refresh"))
        self._catalog.relations[name.lower()] = RelationEntry(
            name, schema, retroactive, changes=True, key=columns, waits=False, timed=False
        )

    def sql(self, text: str, strategy: str = "auto") -> Query:
        """Plan a standing query over the registered streams and relations."""
        from sash.spark.plan import Inputs

        options = Options(strategy)
        try:
            planned = plan_query(text, self._catalog, shards=self.shards, options=options)
        except UnknownNameError as problem:
            self._explain_refused(text, problem)
            raise
        inputs = Inputs({**self._streams, **self._updates}, dict(self._relations), reread=dict(self._tables))
        return Query(planned, self.spark, inputs, self.shards, self.checkpoint)

    @staticmethod
    def _time_column(owner: str, schema: Schema, time: str) -> str:
        """The name of the time column as it is written in the schema."""
        found = next((field for field in schema if field.name.lower() == time.lower()), None)
        if found is None:
            raise CatalogError(f"{owner} has no column {time!r} to take its time from; say which with time=...")
        if found.dtype not in _TIMES:
            raise CatalogError(
                f"the time column {time!r} of {owner} is {type_name(found.dtype)}: make it TIMESTAMP, TIMESTAMP_NTZ, DATE, "
                "or BIGINT microseconds"
            )
        return found.name

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
