"""The engine: streams and relations by name, and queries over them, on a Spark session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sash.durations import microseconds
from sash.errors import CatalogError, UnknownNameError, UnsupportedSqlError
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.options import Options
from sash.plan.statistics import declared
from sash.plan.types import BIGINT, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, type_name
from sash.planning import plan_query
from sash.query import Query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sash.spark.plan import Source

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
        self._refused: dict[str, dict[str, str]] = {}

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
    ) -> None:
        """Register a streaming DataFrame under a name.

        `time` is the column with a row's time: a timestamp, a date, or microseconds as BIGINT. `slack` is how long rows
        are held back so that late ones fit in. With a `heartbeat` the wall clock moves the stream's time on while no
        row comes. Rows without a time fail the query, or are dropped and counted. `rate` (rows per second) and
        `distinct` (how many values a column has, by name) help to choose plans; they never change an answer.
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
        found = next((field for field in schema if field.name.lower() == time.lower()), None)
        if found is None:
            raise CatalogError(f"stream {name} has no column {time!r} to take its time from; say which with time=...")
        if found.dtype not in _TIMES:
            raise CatalogError(
                f"the time column {time!r} of stream {name} is {type_name(found.dtype)}: make it TIMESTAMP, TIMESTAMP_NTZ, "
                "DATE, or BIGINT microseconds"
            )
        statistics = declared(name, tuple(field.name for field in schema), rate=rate, distinct=distinct)
        beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
        source = Source(df, microseconds(slack, "slack"), beat, bad_rows == "drop")
        self._refused[name.lower()] = refused
        self._streams[name.lower()] = source
        self._catalog.streams[name.lower()] = StreamEntry(name, schema, found.name, statistics)

    def relation(
        self,
        name: str,
        df: DataFrame,
        key: Sequence[str] | None = None,
        retroactive: bool = True,
        changes: bool = False,
        rows: float | None = None,
        distinct: Mapping[str, float] | None = None,
    ) -> None:
        """Register a table that never changes under a name. `key` names columns that are unique in it.

        `rows` and `distinct` (how many values a column has, by name) help to choose plans.
        """
        from sash.spark.types import read_schema

        self._claim(name)
        if changes or df.isStreaming:
            raise UnsupportedSqlError(
                f"relation {name}: relations that change are not supported yet; register plain data"
            )
        if not retroactive:
            raise UnsupportedSqlError(f"relation {name}: non-retroactive relations are not supported yet")
        schema, refused = read_schema(df)
        names = {field.name.lower() for field in schema}
        for column in key or ():
            if column.lower() not in names:
                raise CatalogError(f"relation {name} has no column {column!r} to be its key")
        statistics = declared(name, tuple(field.name for field in schema), rows=rows, distinct=distinct)
        self._refused[name.lower()] = refused
        self._relations[name.lower()] = df
        self._catalog.relations[name.lower()] = RelationEntry(name, schema, statistics=statistics)

    def sql(self, text: str, strategy: str = "auto", join: str = "auto", tau: str | None = None) -> Query:
        """Plan a standing query over the registered streams and relations.

        `join` is how inner joins of streams are run: `auto`, `binary`, or a form of the multi-way join. With `tau`, a
        time such as "5 seconds", changes are released at its multiples only, all since the last at once.
        """
        from sash.spark.plan import Inputs

        options = Options(strategy, join, None if tau is None else microseconds(tau, "tau"))
        try:
            planned = plan_query(text, self._catalog, shards=self.shards, options=options)
        except UnknownNameError as problem:
            self._explain_refused(text, problem)
            raise
        inputs = Inputs(dict(self._streams), dict(self._relations))
        return Query(planned, self.spark, inputs, self.shards, self.checkpoint)

    def _claim(self, name: str) -> None:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise CatalogError(f"{name!r} cannot be written in SQL: use letters, digits and _ in a name")
        if name.lower() in self._streams or name.lower() in self._relations:
            raise CatalogError(f"{name} is already registered")

    def _native_type(self, name: str, sql: str) -> pa.DataType | None:
        from sash.spark.types import expression_type

        source = self._streams.get(name.lower())
        return expression_type(self._relations[name.lower()] if source is None else source.frame, sql)

    def _explain_refused(self, text: str, problem: UnknownNameError) -> None:
        """If the unknown name is of a column that was left out for its type, say so."""
        for source, columns in self._refused.items():
            for column, dtype in columns.items():
                if re.search(rf"\b{re.escape(column)}\b", text, re.IGNORECASE):
                    raise CatalogError(
                        f"column {column} of {source} is {dtype}, which Sash cannot hold: select a part of it, or cast it, "
                        "in the DataFrame that you register"
                    ) from problem
