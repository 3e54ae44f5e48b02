"""The engine: streams and relations by name, and queries over them, on a Spark session."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sash.durations import microseconds
from sash.errors import CatalogError, UnknownNameError, UnsupportedSqlError
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.options import Options
from sash.plan.types import BIGINT, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, type_name
from sash.planning import plan_query
from sash.query import Query

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sash.spark.plan import Source
    from sash.spark.window_store import Keeping
    from sash.transactions.recorder import Recorder
    from sash.windows.periodic import Periodic
    from sash.windows.queries import WindowQueries
    from sash.windows.snapshot import Snapshot

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
        found = next((field for field in schema if field.name.lower() == time.lower()), None)
        if found is None:
            raise CatalogError(f"stream {name} has no column {time!r} to take its time from; say which with time=...")
        if found.dtype not in _TIMES:
            raise CatalogError(
                f"the time column {time!r} of stream {name} is {type_name(found.dtype)}: make it TIMESTAMP, TIMESTAMP_NTZ, "
                "DATE, or BIGINT microseconds"
            )
        beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
        source = Source(df, microseconds(slack, "slack"), beat, bad_rows == "drop")
        self._refused[name.lower()] = refused
        self._streams[name.lower()] = source
        self._catalog.streams[name.lower()] = StreamEntry(name, schema, found.name)

    def relation(
        self,
        name: str,
        df: DataFrame,
        key: Sequence[str] | None = None,
        retroactive: bool = True,
        changes: bool = False,
    ) -> None:
        """Register a table that never changes under a name. `key` names columns that are unique in it."""
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
        self._refused[name.lower()] = refused
        self._relations[name.lower()] = df
        self._catalog.relations[name.lower()] = RelationEntry(name, schema)

    def sql(self, text: str, strategy: str = "auto") -> Query:
        """Plan a standing query over the registered streams and relations."""
        from sash.spark.plan import Inputs

        options = Options(strategy)
        try:
            planned = plan_query(text, self._catalog, shards=self.shards, options=options)
        except UnknownNameError as problem:
            self._explain_refused(text, problem)
            raise
        inputs = Inputs(dict(self._streams), dict(self._relations))
        return Query(planned, self.spark, inputs, self.shards, self.checkpoint)

    def keep(
        self,
        what: str | Query,
        window: str | int,
        every: str | int,
        name: str | None = None,
        path: str | None = None,
        retain: int = 0,
        trigger: str | None = None,
        recorder: Recorder | None = None,
    ) -> Keeping:
        """Keep the window of a registered stream, or the answer of a query, for snapshot and periodic queries.

        The window is `window` long and moves on by `every` at a time: lengths of time, or, for a stream, numbers of rows.
        It is kept in `path` (None: under the engine's checkpoint directory, or in a temporary place), where queries of
        other processes can attach to it. `retain` replaced sub-windows stay for queries that have read them: these then
        read again what has changed, instead of starting again. A query's answer needs a `name` to be asked by.
        """
        from sash.spark.keeping import Place, keep_answer, keep_stream, layout_of

        if isinstance(what, str):
            entry, source = self._catalog.streams.get(what.lower()), self._streams.get(what.lower())
            if entry is None or source is None:
                raise CatalogError(f"there is no stream {what} to keep: register it with engine.stream first")
            layout = layout_of(name or entry.name, entry.schema, entry.time, window, every, retain)
            place = Place.of(path, self.checkpoint, layout.name)
            return keep_stream(self.windows, layout, place, source, entry, trigger, recorder)
        if name is None:
            raise CatalogError("the answer of a query needs a name to be asked by: engine.keep(query, ..., name=...)")
        query = what
        layout = layout_of(name, query.schema, "", window, every, retain, result=True)
        place = Place.of(path, self.checkpoint, name)
        return keep_answer(
            self.windows,
            layout,
            place,
            lambda sink, checkpoint: query.start(sink, trigger=trigger, checkpoint=checkpoint),
            recorder,
        )

    def attach(self, name: str, path: str) -> None:
        """Ask the window that another process keeps in `path`, under this name."""
        self.windows.attach(name, Path(path))

    def snapshot(
        self,
        sql: str,
        isolation: str = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: str = "auto",
        reads: str = "local",
    ) -> Snapshot:
        """Answer a query over a kept window now, while the window moves on.

        `isolation` is latest (= ttu), latest-window-serializable, window-serializable or serial. A query of a higher
        priority suspends others. `timeout` is in seconds. `access` forces an access path (WS or SS), `reads="spark"`
        scans sub-windows as Spark jobs.
        """
        return self.snapshots([sql], isolation, priority, timeout, access, reads)[0]

    def snapshots(
        self,
        sql: Sequence[str],
        isolation: str = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: str = "auto",
        reads: str = "local",
    ) -> list[Snapshot]:
        """Answer queries that differ only in the lengths of their windows, in one pass over the longest."""
        return self.windows.snapshot(sql, isolation, priority, timeout, access, reads, self._streams)

    def periodic(
        self,
        sql: str | Sequence[str],
        every: int = 1,
        priority: int = 0,
        isolation: str = "latest",
        access: str = "auto",
        reads: str = "local",
        callback: Callable[[list[Snapshot]], None] | None = None,
        queue: int = 16,
    ) -> Periodic:
        """Answer a query over a kept window now and after every `every` window updates.

        Iterate over what comes back for the answers, or give a callback; `queue` answers wait at most. Each answer is a
        list: of one, or of as many as there are queries that differ only in the lengths of their windows.
        """
        return self.windows.periodic(
            sql, every, priority, isolation, access, reads, callback, queue, registered=self._streams
        )

    @cached_property
    def windows(self) -> WindowQueries:
        """The kept windows and the queries over them."""
        from sash.spark.window_store import spark_scan
        from sash.windows.queries import WindowQueries

        spark = self.spark
        found = WindowQueries(parallel=self.shards, to_spark=spark.createDataFrame)
        found.scans["spark"] = lambda priority: spark_scan(spark, priority)
        return found

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
