"""Conversion of Python rows (lists of dicts) to Arrow and back, and of schemas written as in DDL."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import BadRowError, CatalogError, EvaluationError
from sash.plan import types
from sash.plan.types import Field, Schema, type_name

Row = Mapping[str, Any]

_TYPES = {name: dtype for dtype, name in types.NAMES.items() if dtype != types.NULL}
_TYPES |= {
    "BYTE": types.TINYINT, "SHORT": types.SMALLINT, "INTEGER": types.INT, "LONG": types.BIGINT, "REAL": types.FLOAT,
}  # fmt: skip


def parse_schema(text: str) -> Schema:
    """A schema written as in DDL.

    >>> [str(field) for field in parse_schema("ts BIGINT, price DECIMAL(10, 2)")]
    ['ts BIGINT', 'price DECIMAL(10,2)']
    """
    fields = []
    for part in _split(text):
        name, _, written = part.strip().partition(" ")
        wanted = written.strip().upper()
        if wanted.startswith("DECIMAL("):
            precision, scale = (int(number) for number in wanted[8:-1].split(","))
            fields.append(Field(name, pa.decimal128(precision, scale)))
        elif wanted in _TYPES:
            fields.append(Field(name, _TYPES[wanted]))
        else:
            raise CatalogError(
                f"column {name!r} has the unknown type {written.strip()!r}; use one of {', '.join(_TYPES)}"
            )
    return tuple(fields)


def _split(text: str) -> list[str]:
    """The parts between commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def infer_schema(name: str, rows: Sequence[Row]) -> Schema:
    """The schema of a list of dicts: its keys, and the common type of the values of each."""
    columns: dict[str, pa.DataType] = {}
    for row in rows:
        for column, value in row.items():
            found = _type_of(name, column, value)
            known = columns.get(column, types.NULL)
            columns[column] = _common(name, column, known, found)
    return tuple(Field(column, types.STRING if dtype == types.NULL else dtype) for column, dtype in columns.items())


def _type_of(name: str, column: str, value: Any) -> pa.DataType:
    match value:
        case None:
            return types.NULL
        case bool():
            return types.BOOLEAN
        case int():
            return types.BIGINT
        case float():
            return types.DOUBLE
        case str():
            return types.STRING
        case bytes():
            return types.BINARY
        case decimal.Decimal():
            _, digits, exponent = value.as_tuple()
            if not isinstance(exponent, int):
                raise BadRowError(f"{name}.{column}: {value} cannot be stored as DECIMAL")
            scale = max(0, -exponent)
            return pa.decimal128(max(len(digits) + max(0, exponent), scale, 1), scale)
        case datetime.datetime():
            return types.TIMESTAMP_NTZ if value.tzinfo is None else types.TIMESTAMP
        case datetime.date():
            return types.DATE
        case _:
            raise BadRowError(f"{name}.{column}: a value of type {type(value).__name__} has no SQL type: {value!r}")


def _common(name: str, column: str, known: pa.DataType, found: pa.DataType) -> pa.DataType:
    if found in (known, types.NULL):
        return known
    if known == types.NULL:
        return found
    if {known, found} == {types.BIGINT, types.DOUBLE}:
        return types.DOUBLE
    if pa.types.is_decimal(known) and pa.types.is_decimal(found):
        scale = max(known.scale, found.scale)
        whole = max(known.precision - known.scale, found.precision - found.scale)
        return pa.decimal128(min(38, whole + scale), scale)
    raise BadRowError(
        f"{name}.{column} has values of different types, {type_name(known)} and {type_name(found)}: convert them to one"
    )


def to_arrow(name: str, rows: Sequence[Row], schema: Schema) -> list[pa.Array]:
    """The rows as Arrow columns; a missing key is NULL."""
    known = {field.name for field in schema}
    for row in rows:
        unknown = row.keys() - known
        if unknown:
            raise BadRowError(f"{name} has no column {min(unknown)!r}; it has {', '.join(sorted(known))}")
    arrays = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        try:
            arrays.append(pa.array(values, field.dtype))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
            raise BadRowError(
                f"{name}.{field.name} is {type_name(field.dtype)}, and has a value that cannot be converted to it: {problem}"
            ) from None
    return arrays


def refuse_duplicates(name: str, table: pa.Table, key: Sequence[int]) -> None:
    """Raise BadRowError if two rows of a static relation have the same key; NULLs are equal."""
    columns = [table.column_names[position] for position in key]
    counted = table.select(columns).group_by(columns).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted.column("count_all"), 1))
    if twice.num_rows:
        first = {column: twice.column(column)[0].as_py() for column in columns}
        raise BadRowError(
            f"relation {name} has {twice.column('count_all')[0]} rows of key {first}: remove the duplicates, or name another key"
        )


def to_dicts(schema: Schema, columns: Sequence[pa.Array]) -> list[dict[str, Any]]:
    """Arrow columns as a list of dicts."""
    names = [field.name for field in schema]
    try:
        lists = [column.to_pylist() for column in columns]
    except (OverflowError, ValueError) as error:
        raise EvaluationError(
            f"the answer has a date or time that Python cannot hold ({error}): keep it within the years 1 to 9999, or select it "
            "as text"
        ) from None
    return [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
