"""The type system: Arrow types under their Spark names."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

BOOLEAN = pa.bool_()
TINYINT = pa.int8()
SMALLINT = pa.int16()
INT = pa.int32()
BIGINT = pa.int64()
FLOAT = pa.float32()
DOUBLE = pa.float64()
STRING = pa.string()
BINARY = pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
NULL = pa.null()

NAMES: dict[pa.DataType, str] = {
    BOOLEAN: "BOOLEAN",
    TINYINT: "TINYINT",
    SMALLINT: "SMALLINT",
    INT: "INT",
    BIGINT: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "STRING",
    BINARY: "BINARY",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
    NULL: "VOID",
}


@dataclass(frozen=True)
class Field:
    """A named, typed column of a plan's output; every column may be NULL."""

    name: str
    dtype: pa.DataType

    def __str__(self) -> str:
        return f"{self.name} {type_name(self.dtype)}"


Schema = tuple[Field, ...]


def is_supported(dtype: pa.DataType) -> bool:
    """Whether plans support columns of this type."""
    return dtype in NAMES or pa.types.is_decimal128(dtype)


def type_name(dtype: pa.DataType) -> str:
    """The Spark SQL name of a type.

    >>> type_name(pa.decimal128(10, 2)), type_name(pa.list_(STRING))
    ('DECIMAL(10,2)', 'ARRAY<STRING>')
    """
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return NAMES[STRING]
    if pa.types.is_map(dtype):
        return f"MAP<{type_name(dtype.key_type)}, {type_name(dtype.item_type)}>"
    if pa.types.is_struct(dtype):
        return f"STRUCT<{', '.join(f'{field.name}: {type_name(field.type)}' for field in dtype)}>"
    if pa.types.is_nested(dtype) and dtype.num_fields == 1:
        return f"ARRAY<{type_name(dtype.field(0).type)}>"
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision},{dtype.scale})"
    return NAMES.get(dtype, str(dtype))


def is_integer(dtype: pa.DataType) -> bool:
    """Whether the type is TINYINT, SMALLINT, INT or BIGINT."""
    return bool(pa.types.is_signed_integer(dtype))


def is_numeric(dtype: pa.DataType) -> bool:
    """Whether the type is an integer, FLOAT, DOUBLE or DECIMAL."""
    return is_integer(dtype) or bool(pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def holds_floats(schema: Schema) -> bool:
    """Whether a column is FLOAT or DOUBLE, whose 0.0 and -0.0 are equal but not the same."""
    return any(pa.types.is_floating(field.dtype) for field in schema)
