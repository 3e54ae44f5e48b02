"""Relations as they are registered: tables that stay, streams of updates, tables that are read again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from sash.durations import microseconds
from sash.errors import CatalogError
from sash.plan.catalog import Key, key_columns, update_columns
from sash.plan.options import BAD_ROWS, check_word
from sash.plan.types import Schema
from sash.spark.plan import Source
from sash.spark.reread import Table, refuse_duplicate_keys
from sash.spark.types import read_schema


@dataclass(frozen=True)
class Registered:
    """A relation's columns, the columns that were left out for their types, and where its rows or updates come from."""

    schema: Schema
    refused: dict[str, str]
    source: DataFrame | Source | Table


def read_relation(
    name: str,
    df: DataFrame | Callable[[], DataFrame],
    key: Key,
    changes: bool,
    time: str,
    heartbeat: str | None,
    refresh: str | None,
    bad_rows: str,
) -> Registered:
    """The relation, by what it is: see `Engine.relation`."""
    if not changes:
        if callable(df) or df.isStreaming or refresh is not None or heartbeat is not None:
            raise CatalogError(f"relation {name} is a stream, or read again: then it changes, so say changes=True")
        return _fixed(name, df, key)
    if not callable(df) and df.isStreaming:
        if refresh is not None:
            raise CatalogError(f"relation {name} is a stream of updates: there is nothing to refresh")
        return _updated(name, df, key, time, heartbeat, bad_rows)
    if refresh is None or heartbeat is not None:
        raise CatalogError(
            f"relation {name} changes, but is not a stream: say how often it is read again, as in "
            'refresh="10 seconds", without a heartbeat; or register a stream of updates'
        )
    return _reread(name, df, key, refresh)


def drops(bad_rows: str) -> bool:
    """Whether rows without a time are dropped, or fail the query."""
    return check_word("bad_rows", bad_rows, BAD_ROWS) == "drop"


def _fixed(name: str, df: DataFrame, key: Key) -> Registered:
    schema, refused = read_schema(df)
    columns = key_columns(name, schema, key)
    if columns is not None:
        refuse_duplicate_keys(name, df, [schema[column].name for column in columns])
    return Registered(schema, refused, df)


def _updated(name: str, df: DataFrame, key: Key, time: str, heartbeat: str | None, bad_rows: str) -> Registered:
    all_columns, refused = read_schema(df)
    found, schema = update_columns(name, all_columns, time, key)
    dropping = drops(bad_rows)
    beat = None if heartbeat is None else microseconds(heartbeat, "heartbeat")
    return Registered(schema, refused, Source(df, 0, beat, dropping, found))


def _reread(name: str, df: DataFrame | Callable[[], DataFrame], key: Key, refresh: str) -> Registered:
    read = df if callable(df) else lambda: df
    schema, refused = read_schema(read())
    columns = key_columns(name, schema, key)
    if columns is None:
        raise CatalogError(f"relation {name} is read again, and what differs is found by key: name its key=...")
    table = Table(name, read, schema, columns, microseconds(refresh, "refresh"))
    return Registered(schema, refused, table)
