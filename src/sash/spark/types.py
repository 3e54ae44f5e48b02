"""Conversion of Spark's column types to the plan's, which are one to one for every supported type."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from sash.plan.sql_types import VARIANT, day_time, year_month
from sash.plan.types import (
    STRING,
    TIMESTAMP,
    Field,
    Schema,
    array_of,
    is_supported,
    map_of,
    struct_of,
    type_name,
)

_LOGGER = "SQLQueryContextLogger"
"""PySpark writes what Spark refuses to this log, on standard error."""


def arrow_type(dtype: DataType) -> pa.DataType | None:
    """The plan's type for a Spark type; None if it is not supported."""
    if isinstance(dtype, ArrayType):
        return _nested(array_of, dtype.elementType)
    if isinstance(dtype, MapType):
        return _nested(map_of, dtype.keyType, dtype.valueType)
    if isinstance(dtype, StructType):
        names = [field.name for field in dtype.fields]
        return _nested(
            lambda *parts: struct_of(list(zip(names, parts, strict=True))), *(field.dataType for field in dtype.fields)
        )
    if isinstance(dtype, DayTimeIntervalType):
        return day_time(dtype.startField, dtype.endField)
    if isinstance(dtype, YearMonthIntervalType):
        return year_month(dtype.startField, dtype.endField)
    if isinstance(dtype, VariantType):
        return VARIANT
    if isinstance(dtype, TimestampType):
        return TIMESTAMP
    if isinstance(dtype, StringType):
        return STRING if dtype.simpleString().split("(")[0] in ("string", "varchar", "char") else None
    try:
        found = to_arrow_type(dtype)
    except (PySparkException, TypeError):
        return None
    # A type of Spark's own that Arrow has as a struct, such as GEOMETRY, is none.
    return found if is_supported(found) and not pa.types.is_nested(found) else None


def _nested(make: Callable[..., pa.DataType], *parts: DataType) -> pa.DataType | None:
    """The nested type of these parts, None if one of them is not supported."""
    inner = [arrow_type(part) for part in parts]
    return None if any(part is None for part in inner) else make(*inner)


def read_schema(frame: DataFrame) -> tuple[Schema, dict[str, str]]:
    """The columns of a DataFrame, and the types of unsupported columns by name."""
    held: list[Field] = []
    not_carried: dict[str, str] = {}
    for field in frame.schema.fields:
        dtype = arrow_type(field.dataType)
        if dtype is None:
            not_carried[field.name] = _name(field.dataType)
        else:
            held.append(Field(field.name, dtype))
    return tuple(held), not_carried


def _name(dtype: DataType) -> str:
    try:
        found = to_arrow_type(dtype)
    except (PySparkException, TypeError):
        return dtype.simpleString()
    own = pa.types.is_nested(found) and not isinstance(dtype, ArrayType | MapType | StructType)
    return dtype.simpleString().upper() if own else type_name(found)


def expression_type(frame: DataFrame, sql: str) -> pa.DataType | str | None:
    """The type of a Spark SQL expression over the frame, by its name if no column can have it; None if Spark refuses it."""
    log = logging.getLogger(_LOGGER)
    before, log.disabled = log.disabled, True
    try:
        (field,) = frame.selectExpr(sql).schema.fields
    except (PySparkException, ValueError):
        return None
    finally:
        log.disabled = before
    return arrow_type(field.dataType) or field.dataType.simpleString()
