"""Sources by name: what CREATE STREAM and CREATE RELATION read, as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from sash.errors import CatalogError
from sash.plan.types import Schema
from sash.script.sources import RELATIONS, STREAMS, option, relation_columns, stream_columns
from sash.script.statements import Declaration, Value
from sash.sql.source import did_you_mean

KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"

_NEVER_TOO_OLD = {"maxFileAge": "36500d"}
"""Spark forgets files much older than the newest, unread ones too, unless told otherwise."""


def stream_frame(spark: SparkSession, given: Declaration) -> DataFrame:
    """The streaming DataFrame of a source."""
    columns = stream_columns(given)
    options = dict(given.options)
    with _spark_errors(spark, "stream", given, STREAMS):
        if given.source == "generator":
            return _sales(spark, options)
        if given.source in ("text", "socket", "kafka"):
            written = option(options, "format")
            reader = spark.readStream.format(given.source).options(**_written(options))
            return _lines(reader.load(), given, None if written is None else str(written))
        if given.source == "rate":
            return spark.readStream.format("rate").options(**_written(options)).load()
        chosen = {**_NEVER_TOO_OLD, **_file_options(given.source, options)}
        return spark.readStream.format(given.source).schema(struct(columns)).options(**chosen).load()


def static_frame(spark: SparkSession, given: Declaration) -> DataFrame:
    """The DataFrame of a relation's source."""
    columns = relation_columns(given)
    options = dict(given.options)
    with _spark_errors(spark, "relation", given, RELATIONS):
        if given.source == "generator":
            return _items(spark, options)
        if given.source == "table":
            return spark.table(str(option(options, "name")))
        reader = spark.read.format(given.source).options(**_file_options(given.source, options))
        if given.columns is not None and columns is not None:
            reader = reader.schema(struct(columns))
        return reader.load()


def struct(schema: Schema) -> StructType:
    """The schema in Spark's types."""
    return StructType([StructField(field.name, from_arrow_type(field.dtype)) for field in schema])


def _written(options: Mapping[str, Value]) -> dict[str, str]:
    """Options as Spark wants them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def _file_options(source: str, options: dict[str, Value]) -> dict[str, str]:
    """A CSV header is compared with the declared columns, which Spark otherwise gives by position whatever it says."""
    written = _written(options)
    header = any(name.lower() == "header" and value.lower() == "true" for name, value in written.items())
    return {**({"enforceSchema": "false"} if source == "csv" and header else {}), **written}


def _lines(frame: DataFrame, given: Declaration, written: str | None) -> DataFrame:
    """Lines of text as they are, stamped on arrival; or, where columns are declared, what is written in them."""
    if given.columns is None:
        return frame if given.source == "kafka" else frame.selectExpr("current_timestamp() AS ts", "value")
    parse: Callable[..., object] = sf.from_json if (written or "").lower() == "json" else sf.from_csv
    ddl = struct(given.columns).simpleString() if parse is sf.from_json else _ddl(given.columns)
    value = sf.col("value").cast("string")
    return frame.select(parse(value, ddl).alias("row")).select("row.*")  # type: ignore[attr-defined]


def _ddl(schema: Schema) -> str:
    return ", ".join(f"`{field.name}` {from_arrow_type(field.dtype).simpleString()}" for field in schema)


def _sales(spark: SparkSession, options: dict[str, Value]) -> DataFrame:
    """Made-up sales at a steady rate: every column is a function of the sale's number, so a batch can be made again."""
    rate, items, stores = (_count(options, name, default) for name, default in _SALES.items())
    _refuse_others("generator", options, _SALES)
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


_SALES = {"rate": 100, "items": 50, "stores": 10}


def _items(spark: SparkSession, options: dict[str, Value]) -> DataFrame:
    """The items that are sold; every tenth is a favourite."""
    items = _count(options, "items", _SALES["items"])
    _refuse_others("generator", options, {"items": 0})
    return spark.range(items).selectExpr(
        "CAST(id AS INT) AS item_id", "concat('item ', id) AS name", "CAST(id % 10 = 0 AS INT) AS favourite"
    )


def _count(options: dict[str, Value], name: str, default: int) -> int:
    value = option(options, name, default)
    if not str(value).isdigit() or int(str(value)) < 1:
        raise CatalogError(f"the generator's option {name} is a whole number from 1, not {value!r}")
    return int(str(value))


def _refuse_others(source: str, options: Mapping[str, Value], known: Mapping[str, int]) -> None:
    for name in options:
        hint = did_you_mean(name, known)
        raise CatalogError(f"{source} has no option {name}; it has {', '.join(known)}{hint}")


@contextmanager
def _spark_errors(spark: SparkSession, what: str, given: Declaration, known: Mapping[str, object]) -> Iterator[None]:
    """What Spark says of a source, in a line."""
    try:
        yield
    except (PySparkException, Py4JError, TypeError) as problem:
        text = str(problem).strip().splitlines()[0]
        if isinstance(problem, Py4JJavaError):
            text = str(problem.java_exception.getMessage())
        if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find" in text:
            if given.source == "kafka":
                text = f"Spark's Kafka package is not there: start with --conf spark.jars.packages={KAFKA_PACKAGE}:{spark.version}"
            else:
                text = f"Spark has no source {given.source}{did_you_mean(given.source, known)}; Sash knows {', '.join(known)}"
        elif "PATH_NOT_FOUND" in text:
            text = f"there is no {option(dict(given.options), 'path')}: make the folder first"
        raise CatalogError(f"{what} {given.name}: {text}") from problem
