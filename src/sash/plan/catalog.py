"""What the names in a query mean: the registered streams and relations, by schema only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from sash.errors import CatalogError
from sash.plan.statistics import UNKNOWN, Statistics
from sash.plan.types import BIGINT, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, Schema, type_name

SparkTyper = Callable[[str, str], pa.DataType | None]
"""(stream or relation name, Spark SQL expression over its columns) -> its type, or None if Spark refuses it."""


OP = "_op"
"""The column in which an update of a relation says whether it adds ('+') or takes away ('-')."""


@dataclass(frozen=True)
class StreamEntry:
    """A registered stream; `time` is the name of its time column."""

    name: str
    schema: Schema
    time: str
    statistics: Statistics = UNKNOWN


@dataclass(frozen=True)
class RelationEntry:
    """A registered relation; what it says is as in the plan's node."""

    name: str
    schema: Schema
    retroactive: bool = True
    changes: bool = False
    key: tuple[int, ...] | None = None
    waits: bool = True
    timed: bool = True
    statistics: Statistics = UNKNOWN


_TIMES = (TIMESTAMP, TIMESTAMP_NTZ, DATE, BIGINT, INT)


def stream_entry(name: str, schema: Schema, time: str) -> StreamEntry:
    """The entry of a stream whose time is in the column of that name, in any case."""
    return StreamEntry(name, schema, time_field(f"stream {name}", schema, time))


def time_field(owner: str, schema: Schema, time: str) -> str:
    """The time column of that name, in any case, as it is written in the schema."""
    found = next((field for field in schema if field.name.lower() == time.lower()), None)
    if found is None:
        raise CatalogError(f"{owner} has no column {time!r} to take its time from; say which with time=...")
    if found.dtype not in _TIMES:
        raise CatalogError(
            f"the time column {time!r} of {owner} is {type_name(found.dtype)}: make it TIMESTAMP, TIMESTAMP_NTZ, DATE, "
            "or BIGINT microseconds"
        )
    return found.name


def missing_op(name: str) -> str:
    """What to tell who registers updates that do not say what they do."""
    return (
        f"the updates of relation {name} have no column {OP} to say '+' or '-': add it, or name a key, by which each update "
        "replaces"
    )


def time_column(name: str, schema: Schema, kind: str = "stream") -> str:
    """The column that a stream takes its time from where nobody says: the one called `ts`, or the only timestamp."""
    called = [field.name for field in schema if field.name.lower() == "ts"]
    times = [field.name for field in schema if field.dtype in (TIMESTAMP, TIMESTAMP_NTZ)]
    if called or len(times) == 1:
        return (called or times)[0]
    raise CatalogError(f"{kind} {name} needs a time column: call it ts, or give the {kind} exactly one TIMESTAMP")


@dataclass
class Catalog:
    """Streams and relations by lower-case name. `spark_type`, where Spark is at hand, types any Spark function."""

    streams: dict[str, StreamEntry] = field(default_factory=dict)
    relations: dict[str, RelationEntry] = field(default_factory=dict)
    spark_type: SparkTyper | None = None
