"""Asks Spark for the values of expressions, and rewrites the files."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_type

from sash.plan.types import type_name
from tests.sql.spark_expressions import ERROR, Pinned, edge_values, read, text_of, topics, write


def main() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # The optimizer evaluates projections of local rows itself, without a job.
        "spark.sql.execution.arrow.pyspark.enabled": "false",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = _local(spark)
    for topic in topics():
        pinned = read(topic)
        if any(one.values is None for one in pinned) or "--all" in sys.argv:
            write(topic, [answer for one in pinned if (answer := _asked(frame, one)) is not None])


def _local(spark: SparkSession) -> DataFrame:
    """The table as rows in the plan, so that no query needs a job."""
    table = edge_values()
    rows = ", ".join(f"({', '.join(map(_literal, row.values()))})" for row in table.to_pylist())
    types = ", ".join(f"CAST({field.name} AS {type_name(field.type)}) AS {field.name}" for field in table.schema)
    return spark.sql(f"SELECT {types} FROM VALUES {rows} AS t({', '.join(table.schema.names)})")


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float):
        return f"DOUBLE('{value}')"
    text = str(value)
    return text if isinstance(value, int) else "'" + text.replace("'", "\\'") + "'"


def _asked(frame: DataFrame, one: Pinned) -> Pinned | None:
    """The expression with its values; None if a value is a time that Python cannot hold."""
    if one.values is not None and "--all" not in sys.argv:
        return one
    try:
        found = frame.selectExpr(f"{one.sql} AS e")
        values = [row[0] for row in found.collect()]
    except (PySparkException, Py4JJavaError):
        return Pinned(one.sql, ERROR)
    except (ValueError, OverflowError):
        return None
    dtype = to_arrow_type(found.schema[0].dataType, timezone="UTC")
    return Pinned(one.sql, text_of(type_name(dtype), [_as_arrow(value) for value in values]))


def _as_arrow(value: Any) -> Any:
    """A value as Arrow has it in Python."""
    match value:
        case bytearray():
            return bytes(value)
        case Row():
            return {name: _as_arrow(part) for name, part in value.asDict().items()}
        case list():
            return [_as_arrow(part) for part in value]
        case dict():
            return [(_as_arrow(key), _as_arrow(part)) for key, part in value.items()]
    return value


main()
