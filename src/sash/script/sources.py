"""The sources that CREATE STREAM and CREATE RELATION can name: their columns, and the options that they need.

Any other name is one of Spark's own sources, of which nothing is known before Spark is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from sash.errors import CatalogError
from sash.plan.types import BIGINT, BINARY, DOUBLE, INT, STRING, TIMESTAMP, Field, Schema
from sash.script.statements import Input, Value

_LINES = (Field("ts", TIMESTAMP), Field("value", STRING))
_SALES = (
    Field("ts", TIMESTAMP),
    Field("store_id", INT),
    Field("item_id", INT),
    Field("price", DOUBLE),
    Field("quantity", INT),
)
_KAFKA = (
    Field("key", BINARY),
    Field("value", BINARY),
    Field("topic", STRING),
    Field("partition", INT),
    Field("offset", BIGINT),
    Field("timestamp", TIMESTAMP),
    Field("timestampType", INT),
)
PARSED = ("json", "csv")
"""The formats in which the lines of a socket, or the values of a topic, can be written."""


@dataclass(frozen=True)
class Source:
    """`columns` are those that rows have, unless others are declared; `needs` the options without which it cannot be.

    `own` is set where columns cannot be declared, `parsed` where declared columns are read from text in a `format`.
    """

    columns: Schema | None = None
    needs: tuple[str, ...] = ()
    own: bool = False
    parsed: bool = False


STREAMS: dict[str, Source] = {
    **dict.fromkeys(("csv", "json", "parquet", "orc"), Source(needs=("path",))),
    "text": Source(_LINES, ("path",), parsed=True),
    "rate": Source((Field("timestamp", TIMESTAMP), Field("value", BIGINT)), own=True),
    "socket": Source(_LINES, ("host", "port"), parsed=True),
    "kafka": Source(_KAFKA, ("kafka.bootstrap.servers",), parsed=True),
    "generator": Source(_SALES, own=True),
}
RELATIONS: dict[str, Source] = {
    **dict.fromkeys(("csv", "json", "parquet", "orc"), Source(needs=("path",))),
    "text": Source((Field("value", STRING),), ("path",), own=True),
    "table": Source(needs=("name",), own=True),
    "generator": Source((Field("item_id", INT), Field("name", STRING), Field("favourite", INT)), own=True),
}


def option(options: dict[str, Value], name: str, default: Value | None = None) -> Value | None:
    """Take the option out, whatever the case of its name."""
    found = next((known for known in options if known.lower() == name.lower()), None)
    return default if found is None else options.pop(found)


def stream_columns(given: Input) -> Schema:
    """The columns of a stream; what is missing or too much in its declaration is told."""
    kind = STREAMS.get(given.source)
    columns = _columns("stream", given, kind)
    if columns is None:
        raise CatalogError(
            f"stream {given.name} needs its columns: CREATE STREAM {given.name} (ts TIMESTAMP, ...) USING {given.source}"
        )
    return columns


def relation_columns(given: Input) -> Schema | None:
    """The columns of a relation; None if only Spark can tell."""
    return _columns("relation", given, RELATIONS.get(given.source))


def _columns(what: str, given: Input, kind: Source | None) -> Schema | None:
    if kind is None:
        return given.columns
    names = {name.lower() for name in given.options}
    for needed in kind.needs:
        if needed not in names:
            raise CatalogError(
                f"{what} {given.name}: {given.source} needs the option {needed}: OPTIONS ({needed} '...')"
            )
    if given.columns is None:
        return kind.columns
    if kind.own:
        own = f": {', '.join(map(str, kind.columns))}" if kind.columns else ""
        raise CatalogError(f"{what} {given.name}: {given.source} has columns of its own{own}; declare none")
    written = str(option(dict(given.options), "format", "")).lower()
    if kind.parsed and written not in PARSED:
        raise CatalogError(
            f"{what} {given.name}: say how its columns are written: OPTIONS (format 'json') or OPTIONS (format 'csv')"
        )
    return given.columns
