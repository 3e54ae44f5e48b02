"""Spark's column types and the plan's: one to one for every type that may flow through a plan."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StringType, TimestampType

from sash.plan.types import STRING, TIMESTAMP, Field, Schema, is_supported


def arrow_type(dtype: DataType) -> pa.DataType | None:
    """The plan's type for a Spark type; None for types that no plan can hold."""
    if isinstance(dtype, TimestampType):
        return TIMESTAMP
    if isinstance(dtype, StringType):
        return STRING if dtype.simpleString().split("(")[0] in ("string", "varchar", "char") else None
    try:
        found = to_arrow_type(dtype)
    except (PySparkException, TypeError):
        return None
    return found if is_supported(found) else None


def read_schema(frame: DataFrame) -> tuple[Schema, dict[str, str]]:
    """The columns of a DataFrame, and, by name, the types of those that no plan can hold."""
    held: list[Field] = []
    refused: dict[str, str] = {}
    for field in frame.schema.fields:
        dtype = arrow_type(field.dataType)
        if dtype is None:
            refused[field.name] = field.dataType.simpleString()
        else:
            held.append(Field(field.name, dtype))
    return tuple(held), refused


def expression_type(frame: DataFrame, sql: str) -> pa.DataType | None:
    """The type of a Spark SQL expression over the frame; None if Spark refuses it. Unknown types stay unknown."""
    try:
        (field,) = frame.selectExpr(sql).schema.fields
    except (PySparkException, ValueError):
        return None
    found = arrow_type(field.dataType)
    if found is not None:
        return found
    try:
        return to_arrow_type(field.dataType)
    except (PySparkException, TypeError):
        return None
