"""The catalog: registered streams and relations by name. Every backend registers them here, so all apply the same checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sash.arguments import check_columns, check_text, check_word, shown
from sash.errors import CatalogError
from sash.plan.statistics import UNKNOWN, Statistics, declared
from sash.plan.types import BIGINT, DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, Schema, type_name
from sash.plan.user_code import UserCode

SparkTyper = Callable[[str, str], pa.DataType | str | None]
"""(stream or relation name, Spark SQL expression over its columns) -> its type, or None if Spark refuses it.

A type that no column can have is given by its name in Spark.
"""

Key = str | Sequence[str] | None
"""A relation's key as the user gives it: one column name, several, or none."""

UNBOUNDED = ("refuse", "allow")
"""Whether a query that would keep all rows of an unbounded stream for ever is refused, or runs."""

OP = "_op"
"""The column of an update of a relation: '+' inserts the row, '-' deletes it."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_LONGEST_NAME = 100
_TIME_TYPES = (TIMESTAMP, TIMESTAMP_NTZ, DATE, BIGINT, INT)


@dataclass(frozen=True)
class StreamEntry:
    """A registered stream; `time` is the name of its time column."""

    name: str
    schema: Schema
    time: str
    statistics: Statistics = UNKNOWN
    endless: bool = False
    """Whether operators may keep all its rows for ever."""


@dataclass(frozen=True)
class RelationEntry:
    """A registered relation; `key` holds column positions, and the flags mean the same as in `plan.nodes.Relation`."""

    name: str
    schema: Schema
    retroactive: bool = True
    changes: bool = False
    key: tuple[int, ...] | None = None
    waits: bool = True
    timed: bool = True
    statistics: Statistics = UNKNOWN


@dataclass
class UserLibrary:
    """Functions and aggregates that users registered, by lower-case name."""

    functions: dict[str, UserCode] = field(default_factory=dict)
    aggregates: dict[str, UserCode] = field(default_factory=dict)


@dataclass
class Catalog:
    """Streams and relations by lower-case name. `spark_type`, where Spark is available, types any Spark function.

    `not_carried` has, by the same names, the columns of sources whose types no query supports, with these types.
    """

    streams: dict[str, StreamEntry] = field(default_factory=dict)
    relations: dict[str, RelationEntry] = field(default_factory=dict)
    spark_type: SparkTyper | None = None
    not_carried: dict[str, Mapping[str, str]] = field(default_factory=dict)
    user: UserLibrary = field(default_factory=UserLibrary)

    def find(self, name: str) -> StreamEntry | RelationEntry | None:
        """The stream or relation of that name, in any case."""
        return self.streams.get(name.lower()) or self.relations.get(name.lower())

    def check_name(self, name: str) -> None:
        """Raise CatalogError if the name cannot be written in SQL, or is taken."""
        check_identifier(name)
        if self.find(name) is not None:
            raise CatalogError(f"{name} is already registered: drop it first, or choose another name")

    def add_stream(
        self,
        name: str,
        schema: Schema,
        time: str | None = None,
        *,
        check_time: bool = True,
        rate: float | None = None,
        distinct: Mapping[str, float] | None = None,
        statistics: Statistics = UNKNOWN,
        not_carried: Mapping[str, str] | None = None,
        unbounded: str = "refuse",
        peak: float | None = None,
    ) -> StreamEntry:
        """Register a stream. Without `time`, its time column is `ts`, or its only timestamp.

        With `unbounded="allow"` queries may keep all its rows for ever. `check_time=False` takes `time` as it is: a replay has the times of rows apart from the column of that name.

        >>> from sash.rows import parse_schema
        >>> Catalog().add_stream("Sales", parse_schema("sold_at TIMESTAMP, price DOUBLE"), rate=5).time
        'sold_at'
        """
        self.check_name(name)
        found = time if time is not None and not check_time else time_column(f"stream {name}", schema, time)
        known = declared(name, _names(schema), rate=rate, distinct=distinct, statistics=statistics, peak=peak)
        endless = check_word("unbounded", unbounded, UNBOUNDED) == "allow"
        self.not_carried[name.lower()] = not_carried or {}
        self.streams[name.lower()] = entry = StreamEntry(name, schema, found, known, endless)
        return entry

    def add_relation(
        self,
        name: str,
        schema: Schema,
        *,
        key: Key = None,
        retroactive: bool = True,
        changes: bool = False,
        waits: bool = True,
        timed: bool = True,
        rows: float | None = None,
        distinct: Mapping[str, float] | None = None,
        statistics: Statistics = UNKNOWN,
        not_carried: Mapping[str, str] | None = None,
    ) -> RelationEntry:
        """Register a relation. `schema` has its own columns only; `update_columns` takes them from those of updates."""
        self.check_name(name)
        known = declared(name, _names(schema), rows=rows, distinct=distinct, statistics=statistics)
        positions = key_columns(name, schema, key)
        self.not_carried[name.lower()] = not_carried or {}
        self.relations[name.lower()] = entry = RelationEntry(
            name, schema, retroactive, changes, positions, waits, timed, known
        )
        return entry

    def drop(self, name: str) -> None:
        """Remove a stream or relation."""
        if self.find(check_identifier(name)) is None:
            raise CatalogError(f"there is no stream or relation {name}")
        self.not_carried.pop(name.lower(), None)
        self.streams.pop(name.lower(), None)
        self.relations.pop(name.lower(), None)


def check_identifier(name: str) -> str:
    """Return the name if it can be written in SQL without quotes, and is not too long for a folder."""
    if not _NAME.fullmatch(check_text("a name", name, CatalogError)):
        raise CatalogError(f"{shown(name)} cannot be written in SQL: use letters, digits and _ in a name")
    if len(name) > _LONGEST_NAME:
        raise CatalogError(f"{shown(name)} is too long: use at most {_LONGEST_NAME} characters in a name")
    return name


def time_column(owner: str, schema: Schema, name: str | None = None) -> str:
    """The time column of that name, in any case, as the schema spells it; the column to use by default if there is none.

    >>> from sash.rows import parse_schema
    >>> time_column("stream s", parse_schema("k INT, TS BIGINT"), "ts")
    'TS'
    """
    if name is None:
        called = [field.name for field in schema if field.name.lower() == "ts"]
        times = [field.name for field in schema if field.dtype in (TIMESTAMP, TIMESTAMP_NTZ)]
        if not called and len(times) != 1:
            raise CatalogError(f"{owner} needs a time column: call it ts, or declare exactly one TIMESTAMP column")
        name = (called or times)[0]
    check_text("time", name, CatalogError)
    found = next((field for field in schema if field.name.lower() == name.lower()), None)
    if found is None:
        raise CatalogError(
            f"{owner} has no column {shown(name)} to take its time from: name its time column with time=... (TIME in a script)"
        )
    if found.dtype not in _TIME_TYPES:
        raise CatalogError(
            f"the time column {name!r} of {owner} is {type_name(found.dtype)}: make it TIMESTAMP, TIMESTAMP_NTZ, DATE, "
            "or BIGINT microseconds"
        )
    return found.name


def update_columns(name: str, schema: Schema, time: str | None, key: Key) -> tuple[str, Schema]:
    """The time column of a relation's updates, and the relation's own columns: all others but `_op`."""
    found = time_column(f"relation {name}", schema, time)
    if key is None and OP not in _names(schema):
        raise CatalogError(
            f"the updates of relation {name} have no column {OP} with '+' or '-': add it, or name a key, so that every "
            "update replaces the row of its key"
        )
    return found, tuple(field for field in schema if field.name not in (found, OP))


def key_columns(name: str, schema: Schema, key: Key) -> tuple[int, ...] | None:
    """The positions of a relation's key columns, which are named in any case."""
    if key is None:
        return None
    known = [field.name.lower() for field in schema]
    wanted = check_columns("key", key)
    missing = next((column for column in wanted if column.lower() not in known), None)
    if missing is not None or not wanted:
        problem = "an empty key" if missing is None else f"no column {shown(missing)} to be its key"
        raise CatalogError(f"relation {name} has {problem}; its columns are {', '.join(known)}")
    return tuple(dict.fromkeys(known.index(column.lower()) for column in wanted))


def partition_names(name: str, schema: Schema, columns: Key) -> tuple[str, ...]:
    """The columns that make the partition of a stream's row, as the schema spells them; none if it has no partitions."""
    if columns is None:
        return ()
    known = {field.name.lower(): field.name for field in schema}
    wanted = check_columns("partition_by", columns)
    missing = next((column for column in wanted if column.lower() not in known), None)
    if missing is not None or not wanted:
        problem = "no columns" if missing is None else f"no column {shown(missing)}"
        raise CatalogError(f"stream {name} has {problem} to be its partition; its columns are {', '.join(known)}")
    return tuple(dict.fromkeys(known[column.lower()] for column in wanted))


def _names(schema: Schema) -> tuple[str, ...]:
    return tuple(field.name for field in schema)
