"""The inputs of a query as they are registered: streams, static tables, streams of updates, and refreshed tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from sash.arguments import check_count, check_word, shown
from sash.durations import microseconds
from sash.errors import BadRowError, CatalogError, OptionError
from sash.plan.catalog import Key, key_columns, partition_names, update_columns
from sash.plan.options import BAD_ROWS
from sash.plan.types import Schema
from sash.spark.file_batches import path_of_files
from sash.spark.rejected import Rejects
from sash.spark.scatter import TIME
from sash.spark.sinks import SINKS, Sink
from sash.spark.sources.history import OF_RECORD, RECORD_ORIGIN, RECORD_PARTITION, RECORD_TEXT, Rereading
from sash.spark.sources.postgres import PostgresRelation
from sash.spark.sources.reading import Reading, ReadTable
from sash.spark.sources.refresh import RefreshedTable
from sash.spark.stream_watch import WatchedStream
from sash.spark.types import read_schema
from sash.sql.render import quoted
from sash.sql.source import did_you_mean
from sash.time import SECOND

IDLE_AFTER = 60 * SECOND
"""After how long a partition without rows is not waited for, if it is not declared."""

KeptRows = str | tuple[str, Mapping[str, Any]] | None
"""Where dropped rows are kept: the path of a changelog, or a sink and its options."""


@dataclass(frozen=True)
class StreamSource:
    """A registered stream, or the updates of a relation. `slack` is the watermark delay, in microseconds.

    With a `heartbeat`, a period in microseconds, the wall clock advances the stream's clock while no rows arrive. `time`
    names the column with a row's time in microseconds, if that is not the stream's own time column; for updates it is the
    column with their times, of any type. `history` is how its rows are read again; None if only its DataFrame may tell.
    `partition` is an expression for the partition of a row, if partitions may be out of step, and `idle_after` after how long
    one without rows is not waited for, in microseconds. `rejects` is where dropped rows are kept. Rows that are more than
    `max_jump` microseconds ahead of the time of their batch are dropped. `batch_limit` is the path of the stream's files, and the
    rows of them that a batch reads.
    """

    frame: DataFrame
    slack: int = 0
    heartbeat: int | None = None
    drop_bad_rows: bool = False
    time: str | None = None
    history: Rereading | None = None
    partition: str | None = None
    idle_after: int = IDLE_AFTER
    rejects: Rejects | None = None
    max_jump: int | None = None
    batch_limit: tuple[str, int] | None = None

    @property
    def watched(self) -> WatchedStream:
        """The settings that warnings about the stream mention."""
        return WatchedStream(self.slack, self.heartbeat is not None, self.max_jump)


@dataclass(frozen=True)
class QueryInputs:
    """The inputs of a query by name: streams and updates of relations, and relations that never change.

    `control` is a stream of (stream, ts, ended) that sets clocks explicitly, and says when a stream ends. `refreshed` are
    tables that are read periodically while a query runs. `bounded` is whether any batch may be the last one, since only what
    is available is read: no time then waits for rows of a later batch. `home` is the folder of the query or job, where it
    has one: stages over constants alone need it.
    """

    streams: Mapping[str, StreamSource]
    relations: Mapping[str, DataFrame] = field(default_factory=dict)
    control: DataFrame | None = None
    refreshed: Mapping[str, RefreshedTable] = field(default_factory=dict)
    bounded: bool = False
    home: str | None = None


def heartbeats(source: StreamSource) -> DataFrame:
    """A stream of the wall clock, with a row every `heartbeat` microseconds."""
    assert source.heartbeat is not None
    rate = source.frame.sparkSession.readStream.format("rate")
    per_second = max(1, SECOND // max(1, source.heartbeat))
    beats = rate.option("rowsPerSecond", per_second).option("numPartitions", 1).load()
    return beats.selectExpr(f"unix_micros(timestamp) AS {TIME}")


@dataclass(frozen=True)
class RegisteredRelation:
    """A relation's columns, its columns of unsupported types, and the source of its rows or updates."""

    schema: Schema
    not_carried: dict[str, str]
    source: DataFrame | StreamSource | RefreshedTable


def read_relation(
    name: str,
    df: DataFrame | Callable[[], DataFrame] | PostgresRelation,
    key: Key,
    changes: bool,
    time: str,
    heartbeat: str | None,
    refresh: str | None,
    bad_rows: str,
) -> RegisteredRelation:
    """Check the arguments of `Engine.relation` and return the relation of the kind that they describe."""
    if isinstance(df, PostgresRelation):
        assert refresh is not None
        return _refreshed(name, df.columns(), {}, df.read, key, refresh)
    if not callable(df) and check_frame(name, df).isStreaming:
        if refresh is not None:
            raise CatalogError(f"relation {name} is a stream of updates, which is not refreshed: leave out refresh")
        if not changes:
            raise CatalogError(f"relation {name} is a stream: pass changes=True, if it is a stream of its updates")
        return _updated(name, df, key, time, heartbeat, bad_rows)
    if heartbeat is not None:
        raise CatalogError(f"relation {name} is not a stream of updates, which a heartbeat is for: leave out heartbeat")
    if refresh is not None:
        return _refreshed(name, *_read_frame(name, df), key, refresh)
    if changes or callable(df):
        raise CatalogError(
            f'relation {name} changes, but is not a stream: pass a refresh period, as in refresh="10 seconds", or register '
            "a stream of updates"
        )
    return _static(name, df, key)


def check_frame(name: str, df: object) -> DataFrame:
    """Return the value if it is a DataFrame of Spark's."""
    if not isinstance(df, DataFrame):
        raise CatalogError(f"{name} must be a DataFrame of Spark's, not {shown(df)}")
    return df


def stream_partitions(name: str, df: DataFrame, columns: Key) -> tuple[Schema, dict[str, str], str | None]:
    """The columns of a stream, those of unsupported types, and the expression for the partition of a row, if it has any."""
    of_record = RECORD_PARTITION in df.columns
    schema, not_carried = read_schema(df.drop(*OF_RECORD))
    names = [quoted(column) for column in partition_names(name, schema, columns)]
    if not names:
        return schema, not_carried, RECORD_PARTITION if of_record else None
    return (
        schema,
        not_carried,
        names[0] if len(names) == 1 else f"to_json(array({', '.join(f'CAST({one} AS STRING)' for one in names)}))",
    )


def read_rejects(
    df: DataFrame, schema: Schema, bad: KeptRows, late: KeptRows, most_bad: float | None
) -> Rejects | None:
    """Where the dropped rows of a stream are kept, and how a row becomes text: as it came, or else its columns as JSON."""
    if bad is None and late is None and most_bad is None:
        return None
    columns = ", ".join(quoted(field.name) for field in schema)
    text = RECORD_TEXT if RECORD_TEXT in df.columns else f"to_json(struct({columns}))"
    origin = RECORD_ORIGIN if RECORD_ORIGIN in df.columns else "NULL"
    return Rejects(kept_in(bad), kept_in(late), text, origin, most_bad)


def read_batch_limit(name: str, df: DataFrame, rows: int | None) -> tuple[str, int] | None:
    """The path of the files that a stream reads, and the rows of them that a batch reads."""
    if rows is None:
        return None
    check_count("max_rows_per_batch", rows)
    path = path_of_files(df)
    if path is None:
        raise CatalogError(
            f"stream {name}: max_rows_per_batch is for files that are read with the option maxFilesPerTrigger, which bounds the "
            "first batch; for Kafka, set maxOffsetsPerTrigger"
        )
    return path, rows


def kept_in(target: KeptRows) -> Sink | None:
    """The sink of dropped rows: by default a changelog, whose path is given."""
    if target is None:
        return None
    name, options = ("changelog", {"path": target}) if isinstance(target, str) else target
    if name not in SINKS:
        raise OptionError(f"dropped rows cannot be kept in {name}{did_you_mean(name, SINKS)}; use {', '.join(SINKS)}")
    return SINKS[name](options)


def drops_bad_rows(bad_rows: str) -> bool:
    """Whether rows without a time are dropped, rather than fail the query."""
    return check_word("bad_rows", bad_rows, BAD_ROWS) == "drop"


def _static(name: str, df: DataFrame, key: Key) -> RegisteredRelation:
    schema, not_carried = read_schema(df)
    columns = key_columns(name, schema, key)
    if columns is not None:
        names = [schema[column].name for column in columns]
        twice = df.groupBy(*names).agg(sf.count(sf.lit(1)).alias("_rows")).where("_rows > 1").head(1)
        if twice:
            found = {column: twice[0][column] for column in names}
            raise BadRowError(
                f"relation {name} has {twice[0]['_rows']} rows of key {found}: make them one, or name another key"
            )
    return RegisteredRelation(schema, not_carried, df)


def _updated(name: str, df: DataFrame, key: Key, time: str, heartbeat: str | None, bad_rows: str) -> RegisteredRelation:
    all_columns, not_carried = read_schema(df)
    found, schema = update_columns(name, all_columns, time, key)
    beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
    return RegisteredRelation(schema, not_carried, StreamSource(df, 0, beat, drops_bad_rows(bad_rows), found))


def _read_frame(
    name: str, df: DataFrame | Callable[[], DataFrame]
) -> tuple[Schema, dict[str, str], Callable[[object], Reading]]:
    """The columns of a table that a DataFrame reads, its columns of unsupported types, and how it is read again."""
    read = df if callable(df) else lambda: df
    schema, not_carried = read_schema(check_frame(name, read()))
    names = [column.name for column in schema]
    return schema, not_carried, lambda _: Reading(read().select(*names).toArrow())


def _refreshed(
    name: str, schema: Schema, not_carried: dict[str, str], read: ReadTable, key: Key, refresh: str
) -> RegisteredRelation:
    columns = key_columns(name, schema, key)
    if columns is None:
        raise CatalogError(f"relation {name} is refreshed, and its changes are found by key: name its key=...")
    return RegisteredRelation(
        schema, not_carried, RefreshedTable(name, read, schema, columns, microseconds(refresh, "refresh"))
    )
