"""The sources that CREATE STREAM and CREATE RELATION can name: their columns, and the options that they require.

Any other name is that of a Spark data source; Sash knows nothing about it before Spark loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime

from sash.arguments import check_count, whole_number
from sash.avro.registry import registry_address
from sash.durations import microseconds
from sash.errors import CatalogError, OptionError
from sash.plan.types import Field, Schema
from sash.rows import parse_schema
from sash.script.statements import Declaration, Value, about
from sash.secret_references import check_references, has_references
from sash.sql.source import did_you_mean
from sash.time import HOUR

_LINES = parse_schema("ts TIMESTAMP, value STRING")
_SALES = parse_schema("ts TIMESTAMP, store_id INT, item_id INT, price DOUBLE, quantity INT")
_ITEMS = parse_schema("item_id INT, name STRING, favourite INT")
_KAFKA = parse_schema(
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT"
)
RECORD_COLUMNS = {
    "_key": "CAST(key AS STRING)",
    "_topic": "topic",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_headers": "map_from_entries(transform(filter(headers, (h, i) -> NOT exists(slice(headers, i + 2, size(headers)), "
    "later -> later.key = h.key)), h -> struct(h.key, CAST(h.value AS STRING))))",
}
"""Declared columns of a Kafka stream that are taken from the record, not from its value: Spark's expressions for them."""
_GENERATOR = {"rate": 100, "items": 50, "stores": 10}
"""The options of the generator source, which makes up sales, and their defaults."""
_FILES = ("csv", "json", "parquet", "orc", "text")
_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_COUNTS = {"rate": ("rowsPerSecond", "numPartitions"), **dict.fromkeys(_FILES, ("maxFilesPerTrigger",))}
"""Options of Spark's sources that are whole numbers from 1."""
_FLAGS = {
    "csv": (
        "header",
        "inferSchema",
        "enforceSchema",
        "multiLine",
        "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace",
    ),
    "json": ("multiLine", "primitivesAsString", "allowComments", "allowSingleQuotes"),
}
"""Options of Spark's sources that are true or false."""
_LARGEST_PORT = 65535
PARSED = ("json", "csv")
"""The formats from which declared columns can be parsed, in the lines of a socket or file or the values of a topic."""
AVRO = "avro"
"""The format of binary values of a topic."""

CHANGE_EVENTS = ("debezium-json", "debezium-avro", "maxwell-json", "canal-json")
"""The formats of the updates of a relation: change events of a database."""
_OF_AVRO = ("schema", "registry", "subject", "registry.user", "registry.password")


@dataclass(frozen=True)
class SourceType:
    """`columns` are those of its rows if none are declared, `required` the options that must be declared.

    `fixed` means that columns cannot be declared, `parsed` that declared columns are parsed from text in a `format`.
    """

    columns: Schema | None = None
    required: tuple[str, ...] = ()
    fixed: bool = False
    parsed: bool = False


STREAMS: dict[str, SourceType] = {
    **dict.fromkeys(("csv", "json", "parquet", "orc"), SourceType(required=("path",))),
    "text": SourceType(_LINES, ("path",), parsed=True),
    "rate": SourceType(parse_schema("timestamp TIMESTAMP, value BIGINT"), fixed=True),
    "socket": SourceType(_LINES, ("host", "port"), parsed=True),
    "kafka": SourceType(_KAFKA, ("kafka.bootstrap.servers",), parsed=True),
    "generator": SourceType(_SALES, fixed=True),
}
RELATIONS: dict[str, SourceType] = {
    **dict.fromkeys(("csv", "json", "parquet", "orc"), SourceType(required=("path",))),
    "text": SourceType(parse_schema("value STRING"), ("path",), fixed=True),
    "table": SourceType(required=("name",), fixed=True),
    "postgres": SourceType(required=("url",)),
    "generator": SourceType(_ITEMS, fixed=True),
}


def option(options: dict[str, Value], name: str, default: Value | None = None) -> Value | None:
    """Remove an option, named in any case, and return its value."""
    found = next((known for known in options if known.lower() == name.lower()), None)
    return default if found is None else options.pop(found)


def is_of_record(declaration: Declaration, field: Field) -> bool:
    """Whether a declared column is taken from a Kafka record itself: its key, headers, place or time."""
    return declaration.source == "kafka" and field.name.lower() in RECORD_COLUMNS


def is_change_events(declaration: Declaration) -> bool:
    """Whether a source has change events of a database."""
    return str(option(dict(declaration.options), "format", "")).lower() in CHANGE_EVENTS


@dataclass(frozen=True)
class AvroOptions:
    """Where the schemas of Avro values are: in a file, or in a registry. `expected` means that the subject must exist."""

    schema: str | None
    registry: str | None
    subject: str | None = None
    expected: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def is_avro(declaration: Declaration) -> bool:
    """Whether the values of a source are in Avro."""
    written = str(option(dict(declaration.options), "format", "")).lower()
    return written == AVRO or written.endswith(f"-{AVRO}")


def avro_options(declaration: Declaration) -> tuple[AvroOptions, dict[str, Value]]:
    """The options of a source about Avro, and its other ones."""
    options = dict(declaration.options)
    given = {name: option(options, name) for name in _OF_AVRO}
    schema, registry, subject, user, password = (None if one is None else str(one) for one in given.values())
    with about("option format"):
        if declaration.source != "kafka":
            raise OptionError(f"{declaration.name}: Avro is a format of topics: USING kafka")
        if (schema is None) == (registry is None):
            raise OptionError(
                f"{declaration.name}: values in Avro need a schema: OPTIONS (schema 'file.avsc'), or OPTIONS (registry "
                "'http://localhost:8081') if each has the number of its schema in a registry"
            )
        if registry is None and (subject, user, password) != (None, None, None):
            raise OptionError(f"{declaration.name}: subject, registry.user and registry.password are for a registry")
    if registry is None:
        return AvroOptions(schema, None), options
    with about("option registry"):
        if not has_references(registry):
            registry_address(registry)
    topic = str(option(dict(options), "subscribe", ""))
    guessed = f"{topic}-value" if topic and "," not in topic else None
    return AvroOptions(None, registry, subject or guessed, subject is not None, user, password), options


def stream_columns(declaration: Declaration, *, updates: bool = False) -> Schema:
    """The columns of a stream, or of the `updates` of a relation; raises an error if columns or options are missing."""
    kind = STREAMS.get(declaration.source)
    if is_change_events(declaration) and not updates:
        raise OptionError(
            f"stream {declaration.name}: {', '.join(CHANGE_EVENTS)} are formats of CREATE RELATION ... CHANGES"
        )
    columns = _columns("stream", declaration, kind)
    if columns is None:
        raise CatalogError(
            f"stream {declaration.name} needs its columns: CREATE STREAM {declaration.name} (ts TIMESTAMP, ...) "
            f"USING {declaration.source}"
        )
    return columns


def relation_columns(declaration: Declaration) -> Schema | None:
    """The columns of a relation; None if only Spark knows them."""
    return _columns("relation", declaration, RELATIONS.get(declaration.source))


def _columns(what: str, declaration: Declaration, kind: SourceType | None) -> Schema | None:
    if kind is None:
        return declaration.columns
    given = {name.lower() for name in declaration.options}
    for name in kind.required:
        if name not in given:
            raise OptionError(
                f"{what} {declaration.name}: {declaration.source} needs the option {name}: OPTIONS ({name} '...')"
            )
    if declaration.columns is None:
        return kind.columns
    if kind.fixed:
        columns = f": {', '.join(map(str, kind.columns))}" if kind.columns else ""
        raise CatalogError(f"{what} {declaration.name}: {declaration.source} has fixed columns{columns}; declare none")
    written = str(option(dict(declaration.options), "format", "")).lower()
    if kind.parsed and is_avro(declaration):
        avro_options(declaration)
    elif kind.parsed and written not in (*PARSED, *CHANGE_EVENTS):
        raise OptionError(
            f"{what} {declaration.name}: its columns are parsed from text: add OPTIONS (format 'json') "
            "or OPTIONS (format 'csv'), or, of a topic, (format 'avro')"
        )
    return declaration.columns


def check_options(what: str, declaration: Declaration) -> None:
    """Raise OptionError if an option of a source that Sash knows has a value that Spark refuses.

    Options that Sash does not know are left to Spark.
    """
    source, options = declaration.source, dict(declaration.options)
    owner = f"{what} {declaration.name}"
    for name, value in options.items():
        with about(f"option {name.lower()}"):
            check_references(name, value)
    if source == "generator":
        generator_counts(what, options)
    if source == "postgres" and what == "relation":
        PostgresOptions.of(declaration)
    for name in _COUNTS.get(source, ()):
        _check(owner, options, name, "a whole number from 1", lambda text: bool(whole_number(text)))
    for name in _FLAGS.get(source, ()):
        _check(owner, options, name, "true or false", lambda text: text.lower() in ("true", "false"))
    if source == "socket":
        valid = f"a whole number from 1 to {_LARGEST_PORT}"
        _check(owner, options, "port", valid, lambda text: bool(whole_number(text, _LARGEST_PORT)))
    if source == "kafka":
        with about("option startingoffsets"):
            kafka_start(options)
    if source == "kafka" and not {name.lower() for name in options} & {name.lower() for name in _SUBSCRIPTIONS}:
        raise OptionError(
            f"{owner}: kafka needs one of the options {', '.join(_SUBSCRIPTIONS)}: OPTIONS (subscribe 'topic')"
        )


def kafka_start(options: Mapping[str, Value]) -> dict[str, Value]:
    """The options of a Kafka stream with a `startingOffsets` that is a time replaced by those of Spark's connector.

    A partition is then read from its first record of that time or later; one that has none, from its end.

    >>> kafka_start({"subscribe": "t", "startingOffsets": "2026-01-01 00:00:00"})
    {'subscribe': 't', 'startingTimestamp': '1767225600000', 'startingOffsetsByTimestampStrategy': 'latest'}
    """
    found = dict(options)
    start = str(option(found, "startingOffsets", ""))
    if not start:
        return found
    if start.lower() in ("earliest", "latest") or start.startswith("{"):
        return {**found, "startingOffsets": start}
    try:
        instant = datetime.fromisoformat(start)
    except ValueError:
        raise OptionError(
            f"startingOffsets is earliest, latest, a time such as '2026-01-31 12:00:00' (in UTC, unless it has a zone), or "
            f"offsets as JSON, not {start!r}"
        ) from None
    instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant
    millis = round(instant.timestamp() * 1_000)
    return {**found, "startingTimestamp": str(millis), "startingOffsetsByTimestampStrategy": "latest"}


def _check(owner: str, options: dict[str, Value], name: str, valid: str, holds: Callable[[str], bool]) -> None:
    value = option(dict(options), name)
    if value is not None and not has_references(value) and not holds(str(value)):
        with about(f"option {name.lower()}"):
            raise OptionError(f"{owner}: the option {name} must be {valid}, not {value!r}")


@dataclass(frozen=True)
class PostgresOptions:
    """What is read of a PostgreSQL server: a `table`, or the rows of a `query`.

    `changes_by` is the column by which rows that have changed are found, in times or numbers that grow; a reading goes back
    by `overlap`, a time or a number, and after `full_every` microseconds all rows are read again. A row is deleted if its
    column `deleted_by` is true, or not NULL.
    """

    url: str
    table: str | None = None
    query: str | None = None
    changes_by: str | None = None
    deleted_by: str | None = None
    overlap: str | None = None
    full_every: int = HOUR

    @staticmethod
    def of(declaration: Declaration) -> PostgresOptions:
        """The options of a relation; raises OptionError if they do not fit."""
        owner, known = f"relation {declaration.name}", [one.name for one in fields(PostgresOptions)]
        given: dict[str, str] = {}
        for name, value in declaration.options.items():
            if name.lower() not in known:
                with about(f"option {name.lower()}"):
                    hint = did_you_mean(name, known)
                    raise OptionError(f"{owner}: postgres has no option {name}; it has {', '.join(known)}{hint}")
            given[name.lower()] = str(value)
        if ("table" in given) == ("query" in given):
            raise OptionError(f"{owner}: postgres needs one of the options table and query")
        parts = given.get("table", "t").split(".")
        if len(parts) > 2 or not all(parts):
            with about("option table"):
                raise OptionError(
                    f"{owner}: {given['table']!r} is not the name of a table: write table or schema.table"
                )
        for name in ("deleted_by", "overlap", "full_every"):
            if name in given and "changes_by" not in given:
                with about(f"option {name}"):
                    raise OptionError(f"{owner}: {name} is for rows that are found by changes_by: add that option")
        overlap, query = given.get("overlap"), given.get("query")
        with about("option overlap"):
            if overlap is not None and whole_number(overlap) is None:
                microseconds(overlap, "overlap")
        with about("option full_every"):
            full_every = microseconds(given.get("full_every", "1 hour"), "full_every")
        return PostgresOptions(
            given.get("url", ""),
            given.get("table"),
            None if query is None else query.strip().rstrip(";"),
            given.get("changes_by"),
            given.get("deleted_by"),
            overlap,
            full_every,
        )


def bounded(declaration: Declaration, rows: int | None) -> Declaration:
    """The stream with the option of its source that bounds a batch, by MAX ROWS PER BATCH; files begin with one per batch."""
    if rows is None:
        return declaration
    owner, source = f"stream {declaration.name}", declaration.source
    check_count("MAX ROWS PER BATCH", rows)
    if source != "kafka" and source not in _FILES:
        raise OptionError(f"{owner}: MAX ROWS PER BATCH is for kafka and files; {source} gives what it has at a time")
    name, value = ("maxOffsetsPerTrigger", rows) if source == "kafka" else ("maxFilesPerTrigger", 1)
    if name.lower() in {known.lower() for known in declaration.options}:
        raise OptionError(f"{owner}: MAX ROWS PER BATCH sets {name}: leave out that option")
    return replace(declaration, options={**declaration.options, name: value})


def generator_counts(what: str, options: Mapping[str, Value]) -> dict[str, int]:
    """The options of a stream or relation of the generator, with their defaults.

    >>> generator_counts("stream", {"rate": 7})
    {'rate': 7, 'items': 50, 'stores': 10}
    """
    defaults = _GENERATOR if what == "stream" else {"items": _GENERATOR["items"]}
    given, found = dict(options), {}
    for name, default in defaults.items():
        value = str(option(given, name, default))
        number = whole_number(value)
        if not number:
            with about(f"option {name}"):
                raise CatalogError(f"the generator's option {name} must be a whole number from 1, not {value!r}")
        found[name] = number
    for name in given:
        with about(f"option {name.lower()}"):
            hint = did_you_mean(name, defaults)
            raise CatalogError(f"generator has no option {name}; its options are {', '.join(defaults)}{hint}")
    return found
