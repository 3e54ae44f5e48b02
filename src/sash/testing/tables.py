"""The rows of an input of a replay, from a list of dicts or from a table of pandas, Polars or Arrow, as typed columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sash.arguments import shown
from sash.errors import BadRowError
from sash.plan import types
from sash.plan.sql_types import DAY_TO_SECOND, VARIANT, exported
from sash.plan.types import Field, Schema, type_name
from sash.rows import Row, infer_type
from sash.testing.times import TimeUnit
from sash.time import DAY
from sash.variant_columns import ENCODED, holds_variants, store_variants

Rows = Sequence[Row] | Any
"""The rows of an input: a list of dicts, or a table that has Arrow's interface, such as that of pandas or Polars."""

_UNSIGNED = {pa.uint8(): types.SMALLINT, pa.uint16(): types.INT, pa.uint32(): types.BIGINT, pa.uint64(): types.BIGINT}
_DAYS = "it is DATE, so it must be the beginning of a day"


@dataclass(frozen=True)
class InputRows:
    """The columns of an input by name, before they have types: lists of values, or Arrow columns."""

    name: str
    count: int
    columns: Mapping[str, list[Any] | pa.Array]

    def values(self, column: str) -> list[Any]:
        """The values of a column as Python objects; all are None if there is no such column."""
        found = self.columns.get(column, [None] * self.count)
        return found if isinstance(found, list) else found.to_pylist()

    def without(self, *names: str) -> InputRows:
        """The same rows without some columns."""
        return InputRows(self.name, self.count, {c: v for c, v in self.columns.items() if c not in names})


@dataclass(frozen=True)
class TypedRows:
    """Columns with their types; `not_carried` has the types, by name, of columns that no query can use."""

    schema: Schema
    columns: list[pa.Array]
    not_carried: dict[str, str] = field(default_factory=dict)


def read_rows(kind: str, name: str, given: Rows) -> InputRows:
    """The rows of a stream or relation, which the caller gave as a list of dicts or as a table."""
    table = _table(kind, name, given)
    if table is not None:
        columns = {
            column: table.column(column).combine_chunks() for column in _distinct(kind, name, table.column_names)
        }
        return InputRows(name, table.num_rows, columns)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise BadRowError(f"{kind} {name} must be a list of dicts, or a table, not {shown(given)}")
    for position, row in enumerate(given):
        if not isinstance(row, Mapping) or not all(isinstance(column, str) for column in row):
            raise BadRowError(f"row {position} of {kind} {name} must be a dict by column name, not {shown(row)}")
    names = _distinct(kind, name, list(dict.fromkeys(column for row in given for column in row)))
    return InputRows(name, len(given), {column: [row.get(column) for row in given] for column in names})


def typed(rows: InputRows, schema: Schema | None, unit: TimeUnit) -> TypedRows:
    """The columns with the types of the schema, or else with those of their values; a missing column is NULL."""
    if schema is not None:
        known = {column.name for column in schema}
        unknown = sorted(rows.columns.keys() - known)
        if unknown:
            raise BadRowError(f"{rows.name} has no column {unknown[0]!r}; it has {', '.join(sorted(known))}")
        return TypedRows(schema, [_typed(rows, column, unit) for column in schema])
    fields, not_carried = [], {}
    for column, values in rows.columns.items():
        found = infer_type(rows.name, column, values) if isinstance(values, list) else values.type
        dtype = _carried(found)
        if dtype is None:
            not_carried[column] = type_name(found)
        else:
            fields.append(Field(column, dtype))
    return TypedRows(tuple(fields), [_typed(rows, column, unit) for column in fields], not_carried)


def _table(kind: str, name: str, given: Any) -> pa.Table | None:
    """The table that the object is, if it is one; the named levels of a pandas index are columns of it."""
    if type(given).__module__.split(".")[0] == "pandas" and hasattr(given, "reset_index"):
        levels = [level for level in given.index.names if level is not None]
        given = given.reset_index(level=levels) if levels else given
        make: Callable[[], pa.Table] = lambda: pa.Table.from_pandas(given, preserve_index=False)  # noqa: E731
    elif isinstance(given, pa.Table | pa.RecordBatch) or hasattr(given, "__arrow_c_stream__"):
        make = lambda: pa.table(given)  # noqa: E731
    else:
        return None
    try:
        return make()
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as problem:
        raise BadRowError(f"{kind} {name} is not a table that Arrow can read: {problem}") from None


def _distinct(kind: str, name: str, columns: Sequence[str]) -> Sequence[str]:
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.lower(), column)
        if other is not column:
            raise BadRowError(f"{kind} {name} has the columns {other!r} and {column!r}, which SQL cannot tell apart")
    return columns


def _carried(dtype: pa.DataType) -> pa.DataType | None:
    """The type of a column of a query for an Arrow type, or None if queries have no such columns."""
    if pa.types.is_dictionary(dtype):
        return _carried(dtype.value_type)
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return types.STRING
    if pa.types.is_null(dtype):
        return types.STRING
    if any(is_kind(dtype) for is_kind in _BINARY):
        return types.BINARY
    if pa.types.is_timestamp(dtype):
        return types.TIMESTAMP_NTZ if dtype.tz is None else types.TIMESTAMP
    if pa.types.is_date(dtype):
        return types.DATE
    if pa.types.is_duration(dtype):
        return DAY_TO_SECOND
    if pa.types.is_decimal(dtype):
        return pa.decimal128(dtype.precision, dtype.scale) if dtype.precision <= 38 and dtype.scale >= 0 else None
    if pa.types.is_float16(dtype):
        return types.FLOAT
    if dtype == ENCODED:
        return VARIANT
    if types.is_nested(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype):
        return _carried_nested(dtype)
    dtype = _UNSIGNED.get(dtype, dtype)
    return dtype if types.is_supported(dtype) else None


def _parts(dtype: pa.DataType) -> tuple[pa.DataType, ...]:
    return types.parts_of(dtype) if types.is_nested(dtype) else (dtype.value_type,)


def _carried_nested(dtype: pa.DataType) -> pa.DataType | None:
    inner = [part if pa.types.is_null(part) else _carried(part) for part in _parts(dtype)]
    known = [part for part in inner if part is not None]
    if len(known) < len(inner):
        return None
    if types.is_struct(dtype):
        return types.struct_of([(field.name, part) for field, part in zip(dtype, known, strict=True)])
    return types.map_of(*known) if types.is_map(dtype) else types.array_of(known[0])


_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)


def _typed(rows: InputRows, column: Field, unit: TimeUnit) -> pa.Array:
    """A column with its type. Numbers in columns of times are times in the replay's unit."""
    values = rows.columns.get(column.name, [None] * rows.count)
    is_time = pa.types.is_timestamp(column.dtype) or pa.types.is_date(column.dtype)
    try:
        if isinstance(values, list):
            if types.holds(column.dtype, types.is_sql_type):
                return _stored(pa.array(values, exported(column.dtype)), column.dtype)
            return _times(rows, column, unit) if is_time else pa.array(values, column.dtype)
        while pa.types.is_dictionary(values.type):
            plain = values.dictionary  # of a type that take() may not support, such as the string views of Polars
            values = plain.cast(_carried(plain.type) or plain.type).take(values.indices)
        if is_time and not pa.types.is_timestamp(values.type) and not pa.types.is_date(values.type):
            return _times(rows, column, unit)
        if pa.types.is_date(column.dtype) and pa.types.is_timestamp(values.type):
            return _times(rows, column, unit)
        if types.holds(column.dtype, types.is_sql_type):
            return _stored(
                values if holds_variants(column.dtype) else values.cast(exported(column.dtype)), column.dtype
            )
        return values.cast(column.dtype)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise BadRowError(
            f"{rows.name}.{column.name} is {type_name(column.dtype)}, and has a value that cannot be converted to it: {problem}"
        ) from None


def _stored(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    return store_variants(column, dtype).cast(types.storage(dtype))


def _times(rows: InputRows, column: Field, unit: TimeUnit) -> pa.Array:
    """A column of times or dates from values of any kind that stands for a time."""
    micros: list[int | None] = []
    for position, value in enumerate(rows.values(column.name)):
        what = f"row {position} of {rows.name}: {column.name}"
        missing = value is None or value != value  # noqa: PLR0124  (NaN, and NaT of pandas)
        micros.append(None if missing else unit.instant(what, value, BadRowError))
        if not missing and pa.types.is_date(column.dtype) and micros[-1] is not None and micros[-1] % DAY:
            raise BadRowError(f"{what}: {_DAYS}, not {shown(value)}")
    if pa.types.is_date(column.dtype):
        days = [None if at is None else at // DAY for at in micros]
        return pa.array(days, pa.int32()).cast(column.dtype)
    return pa.array(micros, pa.int64()).cast(column.dtype)
