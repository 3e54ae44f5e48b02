"""The DataFrames of sources that CREATE STREAM and CREATE RELATION declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from sash.errors import CatalogError
from sash.plan.types import Field, Schema
from sash.script.sources import (
    PARSED,
    RECORD_COLUMNS,
    RELATIONS,
    STREAMS,
    PostgresOptions,
    avro_options,
    generator_counts,
    is_avro,
    is_change_events,
    is_of_record,
    kafka_start,
    option,
    relation_columns,
    stream_columns,
)
from sash.script.statements import Declaration, Value
from sash.secret_references import resolve
from sash.spark.packages import missing_kafka
from sash.spark.sources.avro import VALUE, avro_records, decoded
from sash.spark.sources.change_events import event_columns, read_change_events, table_columns
from sash.spark.sources.history import (
    FILE_FORMATS,
    RECORD_ORIGIN,
    RECORD_PARTITION,
    RECORD_TEXT,
    Rereading,
    file_rereading,
    kafka_options,
)
from sash.spark.sources.postgres import PostgresRelation
from sash.spark.sql_types import frame_of, spark_struct, spark_type
from sash.sql.render import quoted
from sash.sql.source import did_you_mean

_CORRUPT = "columnNameOfCorruptRecord"
"""Spark's option that names the column with the text of a row that it cannot parse."""
_STAMPED = ("current_timestamp() AS ts", "value")
_PARTITION = "concat_ws('/', topic, partition)"
_FILE = "_metadata.file_path"
_ORIGIN = "concat_ws('/', topic, partition, offset)"

FILES_OF_ANY_AGE = {"maxFileAge": "36500d"}
"""By default Spark ignores files much older than the newest, even unread ones."""


class Updates(NamedTuple):
    """The time column and the key of a relation, for its change events."""

    time: str
    key: tuple[str, ...]


def stream_frame(
    spark: SparkSession,
    given: Declaration,
    *,
    whole: bool = False,
    kept: bool = False,
    updates: Updates | None = None,
) -> DataFrame:
    """The streaming DataFrame of a source of a stream, or of `updates` of a relation.

    `whole` adds the partitions of records, and `kept` the texts and the origins of rows, which may be kept (`OF_RECORD`).
    """
    columns = stream_columns(given, updates=updates is not None)
    options = dict(given.options)
    with _spark_errors("stream", given, STREAMS):
        if given.source == "generator":
            return _sales(spark, options)
        if given.source in ("text", "socket", "kafka"):
            options = avro_options(given)[1] if is_avro(given) else options
            encoding = option(options, "format")
            options = kafka_start(options) if given.source == "kafka" else options
            reader = spark.readStream.format(given.source).options(**_headers(given), **_spark_options(options))
            form = None if encoding is None else str(encoding)
            if updates is not None and is_change_events(given):
                return _change_events(reader.load(), given, str(form).lower(), columns, updates)
            return _parse_lines(reader.load(), given, form, whole=whole, kept=kept)
        if given.source == "rate":
            return spark.readStream.format("rate").options(**_spark_options(options)).load()
        chosen = {**FILES_OF_ANY_AGE, **_file_options(given.source, options)}
        schema = struct(columns)
        texts = kept and given.source in PARSED and _CORRUPT.lower() not in map(str.lower, chosen)
        if texts:
            schema = schema.add(RECORD_TEXT, StringType())
            chosen = {**chosen, _CORRUPT: RECORD_TEXT}
        frame = spark.readStream.format(given.source).schema(schema).options(**chosen).load()
        return _with_texts(frame, columns, texts=texts) if kept and given.source in FILE_FORMATS else frame


def _with_texts(frame: DataFrame, columns: Schema, *, texts: bool) -> DataFrame:
    """Rows of files with the file that each comes from and, if Spark could not parse its text, with that."""
    names = [quoted(field.name) for field in columns]
    text = [f"coalesce({RECORD_TEXT}, to_json(struct({', '.join(names)}))) AS {RECORD_TEXT}"] if texts else []
    return frame.selectExpr(*names, *text, f"{_FILE} AS {RECORD_ORIGIN}")


def stream_rereading(spark: SparkSession, given: Declaration) -> Rereading:
    """How the rows of a stream's source are read again."""
    options = avro_options(given)[1] if is_avro(given) else dict(given.options)
    if given.source not in (*FILE_FORMATS, "kafka"):
        return Rereading(refused=f"Sash reads files and Kafka again, not {given.source}")
    if given.source == "text" and given.columns is None:
        return Rereading(refused="its rows have the times at which they were read: declare its columns")
    if given.source not in ("text", "kafka"):
        return file_rereading(spark, given.source, _file_options(given.source, options), struct(stream_columns(given)))
    encoding = option(options, "format")
    chosen, form = _spark_options(options), None if encoding is None else str(encoding)
    lines = file_rereading(spark, "text", chosen, None)

    def read(reached: list[str] | str) -> DataFrame:
        if isinstance(reached, list) and lines.read is not None:
            return _parse_lines(lines.read(reached), given, form)
        return read_from(str(reached))

    def read_from(offset: str, first: int | None = None) -> DataFrame:
        with _spark_errors("stream", given, STREAMS):
            topics = (
                spark.read.format("kafka").options(**kafka_options({**_headers(given), **chosen}, offset, first)).load()
            )
        return _parse_lines(topics, given, form)

    # Times in the values of records are not those that Kafka finds records by.
    by_time = read_from if given.source == "kafka" and given.columns is None else None
    return Rereading(read, whole=given.source == "text", read_from=by_time)


def static_frame(spark: SparkSession, given: Declaration) -> DataFrame:
    """The DataFrame of a relation's source."""
    columns = relation_columns(given)
    options = dict(given.options)
    with _spark_errors("relation", given, RELATIONS):
        if given.source == "generator":
            return _items(spark, options)
        if given.source == "table":
            return spark.table(str(option(options, "name")))
        if given.source == "postgres":
            rows = PostgresRelation(given.name, PostgresOptions.of(given), given.columns).read().rows
            return frame_of(spark, rows, struct(tuple(Field(f.name, f.type) for f in rows.schema)))
        reader = spark.read.format(given.source).options(**_file_options(given.source, options))
        if given.columns is not None and columns is not None:
            reader = reader.schema(struct(columns))
        return reader.load()


def struct(schema: Schema) -> StructType:
    """The schema in Spark's types."""
    return spark_struct(schema)


def _spark_options(options: Mapping[str, Value]) -> dict[str, str]:
    """Options as the strings that Spark expects, with the secrets that they refer to."""
    return {
        name: str(value).lower() if isinstance(value, bool) else resolve(str(value)) for name, value in options.items()
    }


def _file_options(source: str, options: dict[str, Value]) -> dict[str, str]:
    """The options of a file source. A CSV header must match the declared columns; by default Spark ignores its names."""
    chosen = _spark_options(options)
    header = any(name.lower() == "header" and value.lower() == "true" for name, value in chosen.items())
    return {**({"enforceSchema": "false"} if source == "csv" and header else {}), **chosen}


def _parse_lines(
    frame: DataFrame, given: Declaration, encoding: str | None, *, whole: bool = False, kept: bool = False
) -> DataFrame:
    """Parse lines of text into the declared columns; without columns, give each line its arrival time."""
    added: dict[str, str] = {}
    if whole and given.source == "kafka":
        added[RECORD_PARTITION] = _PARTITION
    if kept and given.source == "kafka":
        added[RECORD_TEXT] = "base64(value)" if is_avro(given) else "CAST(value AS STRING)"
        added[RECORD_ORIGIN] = _ORIGIN
    elif kept:
        added[RECORD_TEXT] = "value"
        added |= {RECORD_ORIGIN: _FILE} if given.source == "text" else {}
    place = [sf.expr(expression).alias(name) for name, expression in added.items()]
    if given.columns is None:
        return frame.select("*", *place) if given.source == "kafka" else frame.selectExpr(*_STAMPED)
    record = {field.name: RECORD_COLUMNS[field.name.lower()] for field in given.columns if is_of_record(given, field)}
    payload = tuple(field for field in given.columns if field.name not in record)
    columns = [sf.expr(text).alias(name) for name, text in record.items()]
    if is_avro(given):
        if payload:
            taken = frame.select(*columns, *place, VALUE)
            frame = decoded(taken, [*record, *added], avro_records(avro_options(given)[0], payload))
        else:
            frame = frame.select(*columns, *place)
        return frame.select(
            *(_from_record(one) if one.name in record else quoted(one.name) for one in given.columns), *added
        )
    parse: Callable[..., object] = sf.from_json if (encoding or "").lower() == "json" else sf.from_csv
    ddl = struct(payload).simpleString() if parse is sf.from_json else _ddl(payload)
    value = sf.col("value").cast("string")
    if payload:
        columns.append(parse(value, ddl).alias("row"))  # type: ignore[attr-defined]
    return frame.select(*columns, *place).select(
        *(
            _from_record(field) if field.name in record else sf.col("row").getField(field.name).alias(field.name)
            for field in given.columns
        ),
        *added,
    )


def _change_events(frame: DataFrame, given: Declaration, encoding: str, columns: Schema, updates: Updates) -> DataFrame:
    """The updates of a relation; a tombstone, which has no value, is none."""
    if is_avro(given):
        events = event_columns(table_columns(columns, updates.time))
        frame = decoded(frame.where(f"{VALUE} IS NOT NULL"), [], avro_records(avro_options(given)[0], events))
    else:
        frame = frame.where(f"{VALUE} IS NOT NULL")
    return read_change_events(frame, encoding, columns, *updates)


def _from_record(field: Field) -> Column:
    return sf.col(field.name).cast(spark_type(field.dtype)).alias(field.name)


def _headers(given: Declaration) -> dict[str, str]:
    """The option by which Kafka's records come with their headers, if a column is made of them."""
    wanted = given.source == "kafka" and any(field.name.lower() == "_headers" for field in given.columns or ())
    return {"includeHeaders": "true"} if wanted else {}


def _ddl(schema: Schema) -> str:
    return ", ".join(f"`{field.name}` {spark_type(field.dtype).simpleString()}" for field in schema)


def _sales(spark: SparkSession, options: dict[str, Value]) -> DataFrame:
    """A stream of sales. Every column is a function of the sale's number, so a batch can be recomputed."""
    rate, items, stores = generator_counts("stream", options).values()
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate).load()

    def uniform(salt: int) -> str:
        return f"(pmod(xxhash64(value, {salt}), 1000003) / 1000003D)"

    return rows.selectExpr(
        "timestamp AS ts",
        f"CAST({stores} * {uniform(1)} AS INT) AS store_id",
        f"CAST({items} * {uniform(2)} * {uniform(2)} AS INT) AS item_id",  # some items sell better than others
        f"ROUND(1 + 19 * {uniform(3)}, 2) AS price",
        f"CAST(1 + 5 * {uniform(4)} AS INT) AS quantity",
    )


def _items(spark: SparkSession, options: dict[str, Value]) -> DataFrame:
    """The relation of items; every tenth is a favourite."""
    items = generator_counts("relation", options)["items"]
    return spark.range(items).selectExpr(
        "CAST(id AS INT) AS item_id", "concat('item ', id) AS name", "CAST(id % 10 = 0 AS INT) AS favourite"
    )


@contextmanager
def _spark_errors(what: str, given: Declaration, known: Mapping[str, object]) -> Iterator[None]:
    """Raise Spark's errors about a source as CatalogErrors of one line."""
    try:
        yield
    except (PySparkException, Py4JError, TypeError) as problem:
        text = str(problem).strip().splitlines()[0]
        if isinstance(problem, Py4JJavaError):
            text = str(problem.java_exception.getMessage())
        if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find" in text:
            if given.source == "kafka":
                text = missing_kafka()
            else:
                hint = did_you_mean(given.source, known)
                text = f"Spark has no source {given.source}{hint}; Sash supports {', '.join(known)}"
        elif "PATH_NOT_FOUND" in text:
            text = f"there is no {option(dict(given.options), 'path')}: create the folder first"
        raise CatalogError(f"{what} {given.name}: {text}") from problem
