"""Functions of JSON."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError

from sash.errors import SashError, TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.json_reader import JsonError
from sash.plan.json_schema import schema_of
from sash.plan.sql_types import VARIANT
from sash.plan.types import BOOLEAN, DOUBLE, INT, STRING
from sash.sql.coercion import implicit
from sash.sql.function_rules import Arguments, of_types
from sash.sql.signatures.base import OnlySparkError, Signature
from sash.sql.source import SqlText
from sash.sql.type_names import type_of


def _from_json(name: str, arguments: Arguments) -> Expression:
    text, schema, *options = arguments
    if not isinstance(schema, Literal) or not isinstance(schema.value, str):
        raise TypeMismatchError(f"the second argument of {name} is the schema, a constant such as 'a INT, b STRING'")
    if options:
        raise OnlySparkError(f"Sash does not run {name} with options")
    dtype = _schema(name, schema.value)
    return Call(name, (implicit(text, STRING, name),), dtype)


def _schema(name: str, text: str) -> pa.DataType:
    """The type that a schema denotes: one that is written out, or columns of a struct."""
    for written in (text, f"STRUCT<{text}>"):
        try:
            node = exp.DataType.build(written, dialect="spark")
            dtype = types.normal(type_of(SqlText(written), node))
        except (ParseError, SashError, ValueError):
            continue
        if not types.is_nested(dtype) and written is text:
            continue
        if not _readable(dtype):
            raise OnlySparkError(f"Sash does not run {name} to {types.type_name(dtype)}")
        return dtype
    raise OnlySparkError(f"Sash does not run {name} with the schema {text}")


def _readable(dtype: pa.DataType) -> bool:
    """Whether Sash reads values of the type exactly as Spark does: not dates and times, which have formats."""
    if types.is_map(dtype) and dtype.key_type != STRING:
        return False
    if types.is_struct(dtype) and any(field.name == "_corrupt_record" for field in dtype):
        return False
    if types.is_nested(dtype):
        return all(map(_readable, types.parts_of(dtype)))
    return dtype in (STRING, BOOLEAN, DOUBLE) or types.is_integer(dtype) or bool(pa.types.is_decimal(dtype))


def _to_json(name: str, arguments: Arguments) -> Expression:
    value, *options = arguments
    if value.dtype == VARIANT and not options:
        return Call("variant_json", (value,), STRING)
    if not types.is_nested(value.dtype):
        raise TypeMismatchError(f"{name} takes a struct, an array or a map, not {types.type_name(value.dtype)}")
    if options:
        raise OnlySparkError(f"Sash does not run {name} with options")
    if types.holds(value.dtype, _is_odd_map):
        raise OnlySparkError(f"Sash does not run {name} of {types.type_name(value.dtype)}")
    return Call(name, (value,), STRING)


def _is_odd_map(dtype: pa.DataType) -> bool:
    """Whether the type is a map whose keys have several notations."""
    return types.is_map(dtype) and dtype.key_type != STRING and not types.is_integer(dtype.key_type)


def _schema_of_json(name: str, arguments: Arguments) -> Expression:
    value, *options = arguments
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise TypeMismatchError(f"the argument of {name} is a constant text")
    if options:
        raise OnlySparkError(f"Sash does not run {name} with options")
    try:
        return Literal(schema_of(value.value), STRING)
    except JsonError:
        raise OnlySparkError(f"Sash does not run {name} of this text") from None


def json_tuple(arguments: Arguments) -> Expression:
    """The fields c0, c1, ... of a struct that JSON_TUPLE makes one row of."""
    if len(arguments) < 2:
        raise TypeMismatchError("json_tuple takes a text and the names of at least one field")
    if any(argument.dtype != STRING for argument in arguments):
        raise TypeMismatchError("json_tuple takes texts only: cast its arguments to STRING")
    texts = tuple(arguments)
    dtype = types.struct_of([(f"c{place}", STRING) for place in range(len(texts) - 1)])
    return Call("json_tuple", texts, dtype)


SIGNATURES: dict[str, Signature] = {
    "get_json_object": Signature(2, 2, of_types((STRING,), STRING)),
    "json_array_length": Signature(1, 1, of_types((STRING,), INT)),
    "json_object_keys": Signature(1, 1, of_types((STRING,), types.array_of(STRING))),
    "from_json": Signature(2, 3, _from_json),
    "to_json": Signature(1, 2, _to_json),
    "schema_of_json": Signature(1, 2, _schema_of_json),
}
