"""Intervals and variants between Spark and Sash: Spark's types of columns, and columns as they are stored or in Arrow.

Sash stores an interval as a number. Python reads intervals of days and times from Arrow as durations, and cannot read those
of years and months, which are exchanged as numbers of months. Variants are encoded in Arrow; a function in Python turns
those of a source into the texts that Sash stores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # not in PySpark's stubs
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    MapType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

from sash.plan.sql_types import DayTimeInterval, Variant, YearMonthInterval
from sash.plan.types import Schema, is_array, is_map, is_struct, storage
from sash.spark.types import arrow_type
from sash.sql.render import quoted, restored, stored
from sash.variant_columns import encode_variants, holds_variants, store_variants

Convert = Callable[[str, DataType], str]


def spark_type(dtype: pa.DataType) -> DataType:
    """Spark's type of a column."""
    if isinstance(dtype, DayTimeInterval):
        return DayTimeIntervalType(*dtype.fields)
    if isinstance(dtype, YearMonthInterval):
        return YearMonthIntervalType(*dtype.fields)
    if isinstance(dtype, Variant):
        return VariantType()
    if is_array(dtype):
        return ArrayType(spark_type(dtype.value_type))
    if is_map(dtype):
        return MapType(spark_type(dtype.key_type), spark_type(dtype.item_type))
    if is_struct(dtype):
        return StructType([StructField(field.name, spark_type(field.type)) for field in dtype])
    return from_arrow_type(dtype)


def spark_struct(schema: Schema) -> StructType:
    """The schema in Spark's types."""
    return StructType([StructField(field.name, spark_type(field.dtype)) for field in schema])


def stored_column(frame: DataFrame, name: str) -> str:
    """A column of a source as Sash stores it, in Spark SQL."""
    found = frame.schema[name].dataType if name in frame.schema.names else None
    column = quoted(name)
    if found is None:
        return column
    stored = _stored(column, found)
    return f"{_storing_variants(frame.sparkSession, found)}({stored})" if _has_variants(found) else stored


def _storing_variants(spark: SparkSession, dtype: DataType) -> str:
    """The name of the session's function that turns the variants in values of a type into the form in which they are stored."""
    plan_type = arrow_type(dtype)
    assert plan_type is not None

    def stored(column: pa.Array) -> pa.Array:
        return store_variants(column, plan_type).cast(storage(plan_type))

    name = f"sash_stored_{hashlib.sha256(dtype.json().encode()).hexdigest()[:12]}"
    spark.udf.register(name, arrow_udf(stored, spark_type(storage(plan_type))))
    return name


def _has_variants(dtype: DataType) -> bool:
    return _holds(dtype, VariantType)


def _stored(column: str, dtype: DataType) -> str:
    if isinstance(dtype, DayTimeIntervalType | YearMonthIntervalType):
        return stored(column, isinstance(dtype, YearMonthIntervalType))
    return _inside(column, dtype, _stored)


def restored_column(column: str, dtype: pa.DataType) -> str:
    """A stored column as one of its type, in Spark SQL."""
    return _restored(column, spark_type(dtype))


def _restored(column: str, dtype: DataType) -> str:
    if isinstance(dtype, DayTimeIntervalType):
        return restored(column, dtype.simpleString().upper())
    return _months_restored(column, dtype, _restored)


def _months_restored(column: str, dtype: DataType, inside: Convert | None = None) -> str:
    if isinstance(dtype, YearMonthIntervalType):
        return restored(column, dtype.simpleString().upper())
    return _inside(column, dtype, inside or _months_restored)


def _exported(column: str, dtype: DataType) -> str:
    if isinstance(dtype, YearMonthIntervalType):
        return stored(column, months=True)
    if isinstance(dtype, VariantType):
        return f"to_json({column})"
    return _inside(column, dtype, _exported)


def _inside(column: str, dtype: DataType, convert: Convert) -> str:
    """A column with what is inside of its values converted."""
    if not _holds(dtype) or not isinstance(dtype, ArrayType | MapType | StructType):
        return column
    if isinstance(dtype, ArrayType):
        return f"transform({column}, x -> {convert('x', dtype.elementType)})"
    if isinstance(dtype, MapType):
        keyed = f"transform_keys({column}, (k, x) -> {convert('k', dtype.keyType)})"
        return f"transform_values({keyed}, (k, x) -> {convert('x', dtype.valueType)})"
    parts = [f"'{f.name}', {convert(f'{column}.{quoted(f.name)}', f.dataType)}" for f in dtype.fields]
    return f"CASE WHEN {column} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def _holds(dtype: DataType, wanted: Any = DayTimeIntervalType | YearMonthIntervalType | VariantType) -> bool:
    """Whether a type is, or has inside, a wanted one: an interval or a VARIANT."""
    if isinstance(dtype, ArrayType):
        return _holds(dtype.elementType, wanted)
    if isinstance(dtype, MapType):
        return _holds(dtype.keyType, wanted) or _holds(dtype.valueType, wanted)
    if isinstance(dtype, StructType):
        return any(_holds(field.dataType, wanted) for field in dtype.fields)
    return isinstance(dtype, wanted)


def _arrow_type(dtype: DataType) -> DataType:
    """The type with months as integers, and all fields of other intervals, which Arrow does not tell apart."""
    if isinstance(dtype, ArrayType):
        return ArrayType(_arrow_type(dtype.elementType))
    if isinstance(dtype, MapType):
        return MapType(_arrow_type(dtype.keyType), _arrow_type(dtype.valueType))
    if isinstance(dtype, StructType):
        return StructType([StructField(field.name, _arrow_type(field.dataType)) for field in dtype.fields])
    return IntegerType() if isinstance(dtype, YearMonthIntervalType) else dtype


def arrow_struct(schema: StructType) -> StructType:
    """The schema of columns as they are in Arrow."""
    return StructType([StructField(f.name, _arrow_type(f.dataType), f.nullable) for f in schema.fields])


def from_arrow(frame: DataFrame, schema: StructType) -> DataFrame:
    """A frame of columns as they are in Arrow, with the types of the schema."""
    if not any(_holds(field.dataType) for field in schema.fields):
        return frame
    return frame.selectExpr(
        *(f"{_months_restored(quoted(f.name), f.dataType)} AS {quoted(f.name)}" for f in schema.fields)
    )


def frame_of(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """A table as a frame with this schema; variants are encoded."""
    return from_arrow(spark.createDataFrame(table, arrow_struct(schema)), schema)


def frame_of_readable(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """As `frame_of`, but variants are texts of JSON."""
    for place, field in enumerate(schema.fields):
        dtype = arrow_type(field.dataType)
        if dtype is not None and holds_variants(dtype):
            stored = store_variants(table.column(place).combine_chunks(), dtype)
            table = table.set_column(place, field.name, encode_variants(stored, dtype))
    return frame_of(spark, table, schema)


def to_arrow(frame: DataFrame) -> pa.Table:
    """A frame as a table; variants are texts of JSON."""
    return readable_frame(frame).toArrow()


def readable_frame(frame: DataFrame) -> DataFrame:
    """A frame with what Python cannot read from Arrow as numbers, and variants as texts of JSON."""
    if not any(_holds(field.dataType) for field in frame.schema.fields):
        return frame
    return frame.selectExpr(
        *(f"{_exported(quoted(f.name), f.dataType)} AS {quoted(f.name)}" for f in frame.schema.fields)
    )
