"""The type system: Arrow types under their Spark names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sash.plan.sql_types import SqlType, Variant

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
_NAME = re.compile(r"[A-Za-z_]\w*")

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
    """Whether plans support columns of this type, which is in its normal form (see `normal`)."""
    if is_nested(dtype):
        return all(is_supported(part) for part in parts_of(dtype))
    return dtype in NAMES or isinstance(dtype, SqlType) or bool(pa.types.is_decimal128(dtype))


def is_sql_type(dtype: pa.DataType) -> bool:
    """Whether the type is an interval, or another that columns hold in the type of its storage."""
    return isinstance(dtype, SqlType)


def storage(dtype: pa.DataType, kept: tuple[type[SqlType], ...] = ()) -> pa.DataType:
    """The type in which columns hold values of a type, but for those types of SQL that are `kept`.

    >>> from sash.plan.sql_types import DAY_TO_SECOND
    >>> storage(array_of(DAY_TO_SECOND))
    ListType(list<item: int64>)
    """
    if isinstance(dtype, SqlType):
        return dtype if isinstance(dtype, kept) else dtype.storage_type
    if not is_nested(dtype) or not holds(dtype, is_sql_type):
        return dtype
    parts = [storage(part, kept) for part in parts_of(dtype)]
    if is_struct(dtype):
        return struct_of([(field.name, part) for field, part in zip(dtype, parts, strict=True)])
    return map_of(*parts) if is_map(dtype) else array_of(parts[0])


def array_of(element: pa.DataType) -> pa.DataType:
    """ARRAY<element>; elements may be NULL."""
    return pa.list_(element)


def struct_of(fields: Sequence[tuple[str, pa.DataType]]) -> pa.DataType:
    """STRUCT<name: type, ...>; every field may be NULL."""
    return pa.struct([pa.field(name, dtype) for name, dtype in fields])


def map_of(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    """MAP<key, value>; values may be NULL."""
    return pa.map_(key, value)


def is_array(dtype: pa.DataType) -> bool:
    """ARRAY of anything."""
    return bool(pa.types.is_list(dtype))


def is_struct(dtype: pa.DataType) -> bool:
    """STRUCT of any fields."""
    return bool(pa.types.is_struct(dtype))


def is_map(dtype: pa.DataType) -> bool:
    """MAP of anything."""
    return bool(pa.types.is_map(dtype))


def is_nested(dtype: pa.DataType) -> bool:
    """ARRAY, STRUCT or MAP."""
    return is_array(dtype) or is_struct(dtype) or is_map(dtype)


def parts_of(dtype: pa.DataType) -> tuple[pa.DataType, ...]:
    """The types directly inside a nested type; none for any other type."""
    if is_map(dtype):
        return dtype.key_type, dtype.item_type
    if is_array(dtype):
        return (dtype.value_type,)
    return tuple(field.type for field in dtype) if is_struct(dtype) else ()


def holds(dtype: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    """Whether the type is, or has anywhere inside, a wanted type."""
    return wanted(dtype) or any(holds(part, wanted) for part in parts_of(dtype))


def is_orderable(dtype: pa.DataType) -> bool:
    """Whether values of the type can be compared: all types but MAP and VARIANT, and those that hold one."""
    return not holds(dtype, lambda part: is_map(part) or isinstance(part, Variant))


def normal(dtype: pa.DataType) -> pa.DataType:
    """The nested type in the one form that plans use: every part may be NULL, and elements have Arrow's usual name.

    Equal types of Arrow may have different texts and hashes otherwise.
    """
    if is_map(dtype):
        return map_of(normal(dtype.key_type), normal(dtype.item_type))
    if is_struct(dtype):
        return struct_of([(field.name, normal(field.type)) for field in dtype])
    return array_of(normal(dtype.value_type)) if is_array(dtype) else dtype


def type_name(dtype: pa.DataType) -> str:
    """The Spark SQL name of a type.

    >>> type_name(pa.decimal128(10, 2)), type_name(pa.list_(STRING))
    ('DECIMAL(10,2)', 'ARRAY<STRING>')
    """
    if isinstance(dtype, SqlType):
        return dtype.name
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return NAMES[STRING]
    if pa.types.is_map(dtype):
        return f"MAP<{type_name(dtype.key_type)}, {type_name(dtype.item_type)}>"
    if pa.types.is_struct(dtype):
        return f"STRUCT<{', '.join(f'{_quoted(field.name)}: {type_name(field.type)}' for field in dtype)}>"
    if pa.types.is_nested(dtype) and dtype.num_fields == 1:
        return f"ARRAY<{type_name(dtype.field(0).type)}>"
    if pa.types.is_decimal(dtype):
        return f"DECIMAL({dtype.precision},{dtype.scale})"
    return NAMES.get(dtype, str(dtype))


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def is_integer(dtype: pa.DataType) -> bool:
    """Whether the type is TINYINT, SMALLINT, INT or BIGINT."""
    return bool(pa.types.is_signed_integer(dtype))


def is_numeric(dtype: pa.DataType) -> bool:
    """Whether the type is an integer, FLOAT, DOUBLE or DECIMAL."""
    return is_integer(dtype) or bool(pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def holds_floats(schema: Schema) -> bool:
    """Whether a column is FLOAT or DOUBLE, whose 0.0 and -0.0 are equal but not the same."""
    return any(holds(field.dtype, pa.types.is_floating) for field in schema)
