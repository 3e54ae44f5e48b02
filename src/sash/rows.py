"""Schemas written as in DDL, the types of Python values, and Arrow columns as rows."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sash.arguments import check_text, shown
from sash.errors import BadRowError, CatalogError, EvaluationError
from sash.plan import types
from sash.plan.sql_types import DAY_TO_SECOND, INTERVALS, VARIANT
from sash.plan.types import Field, Schema, type_name
from sash.variant_columns import exported_column

Row = Mapping[str, Any]

_TYPES = {name: dtype for dtype, name in types.NAMES.items() if dtype != types.NULL}
_TYPES |= {**INTERVALS, VARIANT.name: VARIANT}
_TYPES |= {
    "BYTE": types.TINYINT, "SHORT": types.SMALLINT, "INTEGER": types.INT, "LONG": types.BIGINT, "REAL": types.FLOAT,
}  # fmt: skip


_DIGITS = 38
"""The largest number of digits of a DECIMAL."""
_COLUMN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`]+))\s+(\S.*?)\s*", re.DOTALL)
_DECIMAL = re.compile(r"(?:DECIMAL|DEC|NUMERIC)(?:\s*\(\s*([0-9]{1,4})\s*(?:,\s*([0-9]{1,4})\s*)?\))?")
_NESTED = re.compile(r"(ARRAY|MAP|STRUCT)\s*<(.*)>", re.DOTALL | re.IGNORECASE)
_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`:]+))(?:\s*:\s*|\s+)(\S.*?)\s*", re.DOTALL)


def parse_schema(text: str) -> Schema:
    """A schema written as in DDL; a name in backquotes may have any characters.

    >>> [str(field) for field in parse_schema("ts BIGINT, `unit price` DECIMAL(10, 2), tags ARRAY<STRING>")]
    ['ts BIGINT', 'unit price DECIMAL(10,2)', 'tags ARRAY<STRING>']
    """
    fields: dict[str, Field] = {}
    for part in _split(check_text("a schema", text, CatalogError)):
        found = _COLUMN.fullmatch(part)
        if found is None:
            raise CatalogError(
                f"a schema is written 'name TYPE, name TYPE, ...', and {shown(part)} is not a column of it"
            )
        name = found[2] if found[1] is None else found[1].replace("``", "`")
        if name.lower() in fields:
            raise CatalogError(f"a schema has two columns called {name}: rename one")
        fields[name.lower()] = Field(name, _parse_type(name, found[3]))
    return tuple(fields.values())


def _parse_type(column: str, written: str) -> pa.DataType:
    nested = _NESTED.fullmatch(written)
    if nested is not None:
        return _parse_nested(column, written, nested[1].upper(), _split(nested[2]))
    wanted = " ".join(written.upper().split())
    decimal_type = _DECIMAL.fullmatch(wanted)
    if decimal_type is not None:
        precision, scale = int(decimal_type[1] or 10), int(decimal_type[2] or 0)
        if not 1 <= precision <= _DIGITS or scale > precision:
            raise CatalogError(
                f"column {column!r} cannot be DECIMAL({precision},{scale}): the first number, of all digits, is between 1 "
                f"and {_DIGITS}, and the second, of those after the point, is not greater"
            )
        return pa.decimal128(precision, scale)
    if wanted not in _TYPES:
        plain = ", ".join(name for name in _TYPES if name not in INTERVALS)
        known = f"{plain}, DECIMAL(precision, scale), INTERVAL DAY TO SECOND, INTERVAL YEAR TO MONTH, ARRAY<...>, MAP<..., ...> or STRUCT<name: ...>"
        raise CatalogError(f"column {column!r} has the unknown type {shown(written)}; use one of {known}")
    return _TYPES[wanted]


def _parse_nested(column: str, written: str, kind: str, parts: list[str]) -> pa.DataType:
    if kind == "STRUCT":
        parts = [part for part in parts if part.strip()]
        found = [_PART.fullmatch(part) for part in parts]
        names = [None if each is None else each[2] if each[1] is None else each[1].replace("``", "`") for each in found]
        if None in names or len({str(name).lower() for name in names}) < len(names):
            raise CatalogError(
                f"column {column!r}: {shown(written)} is not a STRUCT<name: TYPE, ...> whose fields have different names"
            )
        return types.struct_of(
            [(str(name), _parse_type(column, each[3])) for name, each in zip(names, found, strict=True) if each]
        )
    if len(parts) != (1 if kind == "ARRAY" else 2):
        raise CatalogError(f"column {column!r}: write {kind}{'<TYPE>' if kind == 'ARRAY' else '<TYPE, TYPE>'}")
    inner = [_parse_type(column, part.strip()) for part in parts]
    return types.array_of(inner[0]) if kind == "ARRAY" else types.map_of(*inner)


def _split(text: str) -> list[str]:
    """The parts between commas that are neither inside parentheses or angle brackets nor in backquotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for position, character in enumerate(text):
        quoted ^= character == "`"
        if quoted:
            continue
        depth += (character in "(<") - (character in ")>")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def infer_type(name: str, column: str, values: Iterable[Any]) -> pa.DataType:
    """The common type of the values of a column; STRING if all are NULL."""
    common = types.NULL
    for value in values:
        common = _common(name, column, common, _type_of(name, column, value))
    return types.STRING if common == types.NULL else common


def _type_of(name: str, column: str, value: Any) -> pa.DataType:
    match value:
        case None:
            return types.NULL
        case bool():
            return types.BOOLEAN
        case numbers.Integral():
            return types.BIGINT
        case numbers.Real():
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
            precision = max(len(digits) + max(0, exponent), scale, 1)
            if precision > _DIGITS:
                raise BadRowError(f"{name}.{column}: {shown(value)} has more than {_DIGITS} digits")
            return pa.decimal128(precision, scale)
        case datetime.datetime() if value != value:  # noqa: PLR0124  (NaT of pandas)
            return types.NULL
        case datetime.datetime():
            return types.TIMESTAMP_NTZ if value.tzinfo is None else types.TIMESTAMP
        case datetime.date():
            return types.DATE
        case datetime.timedelta():
            return DAY_TO_SECOND
        case list() | tuple():
            common = types.NULL
            for element in value:
                common = _common(name, column, common, _type_of(name, column, element))
            return types.array_of(common)
        case dict() if all(isinstance(field, str) for field in value):
            return types.struct_of([(field, _type_of(name, column, inner)) for field, inner in value.items()])
        case _:
            raise BadRowError(
                f"{name}.{column}: a value of type {type(value).__name__} has no SQL type: {shown(value)}"
            )


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
        return pa.decimal128(min(_DIGITS, whole + scale), scale)
    if types.is_array(known) and types.is_array(found):
        return types.array_of(_common(name, column, known.value_type, found.value_type))
    if types.is_struct(known) and types.is_struct(found):
        fields = {field.name: field.type for field in known}
        for field in found:
            fields[field.name] = _common(name, column, fields.get(field.name, types.NULL), field.type)
        return types.struct_of(list(fields.items()))
    raise BadRowError(
        f"{name}.{column} has values of different types, {type_name(known)} and {type_name(found)}: convert them to one"
    )


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
        lists = [
            exported_column(column, field.dtype).to_pylist() for column, field in zip(columns, schema, strict=True)
        ]
    except (OverflowError, ValueError) as error:
        raise EvaluationError(
            f"the answer has a date or time that Python cannot hold ({error}): keep it within the years 1 to 9999, or select it "
            "as text"
        ) from None
    return [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
