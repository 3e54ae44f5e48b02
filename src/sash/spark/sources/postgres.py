"""A table or query of a PostgreSQL server as a relation: read as a whole by COPY, or only the rows that have changed.

One reading is one transaction, so its rows are those of one instant. The server turns every value into text that is parsed
without loss: dates and times are numbers, bytes are hexadecimal. Rows that have changed are found by a column that grows with
every change, such as the time of it. A transaction may commit later than another one with a larger value; so a reading goes
back by an overlap, and now and then everything is read again, which also finds rows that are gone.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from sash.arguments import whole_number
from sash.durations import microseconds
from sash.errors import BadRowError, CatalogError, SourceError
from sash.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Field,
    Schema,
    is_integer,
    is_nested,
    is_sql_type,
    type_name,
)
from sash.script.sources import PostgresOptions
from sash.secret_references import resolve
from sash.spark.sinks.postgres_errors import describe, is_temporary
from sash.spark.sinks.postgres_sql import pg_type, quoted
from sash.spark.sources.reading import Reading
from sash.sql.source import did_you_mean
from sash.time import SECOND

if TYPE_CHECKING:
    from psycopg import Column, Connection

_TYPES = {
    16: BOOLEAN,
    17: BINARY,
    20: BIGINT,
    21: SMALLINT,
    23: INT,
    26: BIGINT,  # oid
    700: FLOAT,
    701: DOUBLE,
    1082: DATE,
    1114: TIMESTAMP_NTZ,
    1184: TIMESTAMP,
}
"""The types of columns by PostgreSQL's numbers; a column of another type is its text."""

_NUMERIC = 1700
_WITHOUT_PRECISION = pa.decimal128(38, 18)
"""The type of a `numeric` column without a precision: that of Spark."""

_MOST_DIGITS = 38
_NUMBERS_BACK = 1_000
"""The overlap of numbers, if none is given."""

_GONE = "_gone"
_LEAST_BLOCK = 1 << 22


@dataclass(frozen=True)
class _Seen:
    """The largest value of the column of changes, as text, and when everything was read last."""

    value: str | None
    whole_at: float


class PostgresRelation:
    """Reads the rows of a table or query; `declared` are the columns to read, and their types, if they are declared.

    Without them it has all columns of the table that are not about deleted rows.
    """

    def __init__(
        self,
        name: str,
        options: PostgresOptions,
        declared: Schema | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._options = options
        self._declared = declared
        self._clock = clock

    @property
    def _from(self) -> str:
        """The table or query, as it stands after FROM."""
        if self._options.table is not None:
            return ".".join(quoted(part) for part in self._options.table.split("."))
        return f"(\n{self._options.query}\n) AS _source"

    def columns(self) -> Schema:
        """The columns; raises an error if the table does not fit, or the server is away and they are not declared."""
        try:
            with self._transaction() as connection:
                return self._columns(self._described(connection))
        except SourceError as problem:
            if self._declared is None or not problem.transient:
                raise
            return self._declared

    def read(self, seen: object = None) -> Reading:
        """Read all rows, or, given what an earlier reading has seen, those that have changed since, if that suffices."""
        options = self._options
        with self._transaction() as connection:
            described = self._described(connection)
            schema = self._columns(described)
            if options.changes_by is None:
                return Reading(self._copy(connection, schema, described, ""))
            assert seen is None or isinstance(seen, _Seen)
            now, by = self._clock(), self._found(options.changes_by, described)
            whole = seen is None or seen.value is None or now - seen.whole_at >= options.full_every / SECOND
            change = quoted(by.name)
            since = "" if whole or seen is None else f"WHERE {change} >= {self._bound(by, seen)} OR {change} IS NULL"
            largest = connection.execute(f"SELECT max({change})::text FROM {self._from} {since}").fetchone()
            rows = self._copy(connection, schema, described, since)
        value = None if largest is None else largest[0]
        if seen is not None:
            value = value or seen.value
        last = _Seen(value, now if whole or seen is None else seen.whole_at)
        gone = pc.fill_null(rows.column(_GONE), False)
        kept = rows.filter(pc.invert(gone)).drop_columns([_GONE])
        return Reading(kept, None if whole else rows.filter(gone).drop_columns([_GONE]), last)

    def _bound(self, by: Column, seen: _Seen) -> str:
        """The value from which rows may have changed."""
        from psycopg.sql import Literal

        kind = _TYPES.get(by.type_code)
        of_type = "numeric" if kind is None else pg_type(kind)
        return f"({Literal(seen.value).as_string(None)}::{of_type} - {self._overlap(by)})"

    def _overlap(self, by: Column) -> str:
        """How far a reading goes back before the largest value seen."""
        given = self._options.overlap
        if _TYPES.get(by.type_code) in (TIMESTAMP, TIMESTAMP_NTZ):
            if given is not None and whole_number(given) is not None:
                raise CatalogError(
                    f"relation {self._name}: {by.name} is a time, and so is overlap: write overlap '1 minute'"
                )
            return f"{microseconds(given or '1 minute', 'overlap')} * INTERVAL '1 microsecond'"
        if given is not None and whole_number(given) is None:
            raise CatalogError(
                f"relation {self._name}: {by.name} is a number, and so is overlap: write overlap {_NUMBERS_BACK}"
            )
        return given or str(_NUMBERS_BACK)

    def _copy(self, connection: Connection[Any], schema: Schema, described: Sequence[Column], where: str) -> pa.Table:
        """Read the columns, and whether a row is gone if only changed rows are read."""
        selected = [self._expression(field, self._found(field.name, described)) for field in schema]
        if self._options.changes_by is not None:
            selected.append(self._gone(described))
            schema = (*schema, Field(_GONE, BOOLEAN))
        statement = f"COPY (SELECT {', '.join(selected)} FROM {self._from} {where}) TO STDOUT (FORMAT csv)"
        text, longest = io.BytesIO(), 0
        with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            for row in copy:
                longest = max(longest, len(row))
                text.write(row)
        return self._parsed(text.getbuffer(), longest, schema)

    def _parsed(self, text: memoryview, longest: int, schema: Schema) -> pa.Table:
        """The rows of COPY's text, in which an empty value is NULL and an empty text is quoted."""
        names = [f"c{position}" for position in range(len(schema))]
        types = {name: _written_as(field.dtype) for name, field in zip(names, schema, strict=True)}
        if not text:
            return pa.schema([(field.name, field.dtype) for field in schema]).empty_table()
        try:
            found = pacsv.read_csv(
                pa.BufferReader(pa.py_buffer(text)),
                pacsv.ReadOptions(column_names=names, block_size=max(_LEAST_BLOCK, 2 * longest)),
                pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
                pacsv.ConvertOptions(
                    column_types=types,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    true_values=["t"],
                    false_values=["f"],
                ),
            ).combine_chunks()
        except pa.ArrowInvalid as problem:
            raise BadRowError(f"relation {self._name}: PostgreSQL sent a value that does not fit: {problem}") from None
        columns = [_read_back(column, field.dtype) for column, field in zip(found.columns, schema, strict=True)]
        return pa.table(columns, names=[field.name for field in schema])

    def _described(self, connection: Connection[Any]) -> Sequence[Column]:
        return connection.execute(f"SELECT * FROM {self._from} LIMIT 0".encode()).description or []

    def _columns(self, described: Sequence[Column]) -> Schema:
        """The columns of the relation: those that are declared, which must be there, or all but the flag of deleted rows."""
        for wanted in (self._options.changes_by, self._options.deleted_by):
            if wanted is not None:
                self._found(wanted, described)
        by = self._options.changes_by
        if by is not None:
            column = self._found(by, described)
            if not _grows(column.type_code):
                raise CatalogError(
                    f"relation {self._name}: changes_by names a column of times or numbers, and {by} is neither"
                )
            self._overlap(column)
        if self._declared is None:
            return tuple(
                Field(column.name, _type(column)) for column in described if column.name != self._options.deleted_by
            )
        for field in self._declared:
            self._found(field.name, described)
            if is_nested(field.dtype) or is_sql_type(field.dtype):
                raise CatalogError(
                    f"relation {self._name}: column {field.name} cannot be read as {type_name(field.dtype)}: declare it as "
                    "STRING"
                )
        return self._declared

    def _found(self, name: str, described: Sequence[Column]) -> Column:
        """The column of that name, in any case if there is only one."""
        exact = [column for column in described if column.name == name]
        found = exact or [column for column in described if column.name.lower() == name.lower()]
        if len(found) != 1:
            names = [column.name for column in described]
            raise CatalogError(
                f"relation {self._name}: PostgreSQL has no column {name}; it has {', '.join(names)}"
                f"{did_you_mean(name, names)}"
            )
        return found[0]

    def _expression(self, field: Field, column: Column) -> str:
        """The value of a column as COPY writes it."""
        value = quoted(column.name)
        if self._declared is not None or column.type_code == _NUMERIC:
            value = f"{value}::{pg_type(field.dtype)}"
        if field.dtype in (TIMESTAMP, TIMESTAMP_NTZ):
            return f"round(extract(epoch FROM {value}) * 1000000)::bigint"
        if field.dtype == DATE:
            return f"{value} - DATE '1970-01-01'"
        if field.dtype == BINARY:
            return f"encode({value}, 'hex')"
        return f"{value}::text" if field.dtype == STRING else value

    def _gone(self, described: Sequence[Column]) -> str:
        """Whether a row is deleted: its flag is true, or the time of its deletion is known."""
        if self._options.deleted_by is None:
            return "false"
        column = self._found(self._options.deleted_by, described)
        value = quoted(column.name)
        return f"{value} IS TRUE" if _TYPES.get(column.type_code) == BOOLEAN else f"{value} IS NOT NULL"

    @contextmanager
    def _transaction(self) -> Iterator[Connection[Any]]:
        """Connect and read in one snapshot."""
        try:
            import psycopg
        except ImportError:
            raise SourceError("USING postgres needs psycopg: pip install 'sash[postgres]'") from None
        try:
            with psycopg.connect(resolve(self._options.url), connect_timeout=10) as connection:
                connection.read_only = True
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.execute("SET TimeZone TO 'UTC'")
                connection.execute("SET DateStyle TO 'ISO'")
                yield connection
        except psycopg.Error as problem:
            shown = self._options.table or "of its query"
            raise SourceError(
                f"relation {self._name}: {describe(problem, shown, 'read')}", transient=is_temporary(problem)
            ) from problem


def _type(column: Column) -> pa.DataType:
    if column.type_code != _NUMERIC:
        return _TYPES.get(column.type_code, STRING)
    precision, scale = column.precision, column.scale
    if precision is None or scale is None or precision > _MOST_DIGITS or not 0 <= scale <= precision:
        return _WITHOUT_PRECISION
    return pa.decimal128(precision, scale)


def _grows(type_code: int) -> bool:
    found = _TYPES.get(type_code)
    return type_code == _NUMERIC or found in (TIMESTAMP, TIMESTAMP_NTZ) or (found is not None and is_integer(found))


def _written_as(dtype: pa.DataType) -> pa.DataType:
    """The type as which COPY's text of a column is parsed."""
    if dtype in (TIMESTAMP, TIMESTAMP_NTZ):
        return BIGINT
    if dtype == DATE:
        return INT
    return STRING if dtype == BINARY else dtype


def _read_back(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.Array:
    """The values of a parsed column in the column's own type."""
    found = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return _from_hex(found) if dtype == BINARY else found.cast(dtype)


def _from_hex(column: pa.Array) -> pa.Array:
    """The bytes of hexadecimal text, all at once."""
    assert column.offset == 0
    validity, offsets, digits = column.buffers()
    places = np.frombuffer(offsets, np.int32, len(column) + 1) // 2
    data = bytes.fromhex("" if digits is None else digits.to_pybytes().decode())
    return pa.Array.from_buffers(BINARY, len(column), [validity, pa.py_buffer(places), pa.py_buffer(data)])
