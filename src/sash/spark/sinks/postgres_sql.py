"""SQL statements that apply a batch, staged as (_op, _ts, c0 ... cn), to a PostgreSQL table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sash.plan.sql_types import DayTimeInterval, Variant, YearMonthInterval
from sash.plan.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_integer,
    is_nested,
)
from sash.spark.sinks.base import OutputSpec

_INTEGERS = {8: "smallint", 16: "smallint", 32: "integer", 64: "bigint"}
_TYPES = {
    BOOLEAN: "boolean",
    FLOAT: "real",
    DOUBLE: "double precision",
    BINARY: "bytea",
    DATE: "date",
    TIMESTAMP: "timestamptz",
    TIMESTAMP_NTZ: "timestamp",
}


def quoted(name: str) -> str:
    """Quote a name for PostgreSQL."""
    return '"' + name.replace('"', '""') + '"'


def pg_type(dtype: pa.DataType) -> str:
    """Return PostgreSQL's type for a column."""
    if is_integer(dtype):
        return _INTEGERS[dtype.bit_width]
    if pa.types.is_decimal(dtype):
        return f"numeric({dtype.precision}, {dtype.scale})"
    if isinstance(dtype, DayTimeInterval):
        return "interval"
    if isinstance(dtype, Variant) or is_nested(dtype):
        return "jsonb"
    if isinstance(dtype, YearMonthInterval):
        return "integer"
    return _TYPES.get(dtype, "text")


@dataclass(frozen=True)
class Statements:
    """The statements for one table, whose name is quoted, and the output of one query."""

    table: str
    output: OutputSpec

    @property
    def _columns(self) -> list[str]:
        return [quoted(name) for name in self.output.names]

    @property
    def _staged(self) -> list[str]:
        return [f"c{position}" for position in range(len(self.output.schema))]

    @property
    def own_columns(self) -> dict[str, str]:
        """The columns that the table has besides the query's, with their types."""
        match self.output.mode:
            case "upsert":
                return {}
            case "net":
                return {"_hash": "uuid NOT NULL"}
            case "changes":
                return {"_batch": "bigint", "_op": "text", "_ts": pg_type(self.output.time)}

    def create(self, *, nulls_not_distinct: bool) -> list[str]:
        """Create the table, with an index on the columns by which a batch finds the rows to change."""
        typed = [
            *(f"{name} {kind}" for name, kind in self.own_columns.items()),
            *(f"{name} {pg_type(field.dtype)}" for name, field in zip(self._columns, self.output.schema, strict=True)),
        ]
        made = [f"CREATE TABLE {self.table} ({', '.join(typed)})"]
        if self.output.mode == "net":
            made.append(f"CREATE INDEX ON {self.table} (_hash)")
        elif self.output.mode == "upsert" and self.output.key:
            nulls = "NULLS NOT DISTINCT" if nulls_not_distinct else ""
            key = ", ".join(self._columns[column] for column in self.output.key)
            made.append(f"ALTER TABLE {self.table} ADD UNIQUE {nulls} ({key})")
        return made

    def stage(self) -> str:
        """Create the temporary table that takes the batch."""
        types = [pg_type(field.dtype) for field in self.output.schema]
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(self._staged, types, strict=True))
        return f"CREATE TEMP TABLE staged (_op text, _ts {pg_type(self.output.time)}, {columns}) ON COMMIT DROP"

    def apply(self, batch: pa.Table, number: int) -> list[str]:
        """Apply the staged batch to the table."""
        match self.output.mode:
            case "upsert":
                return self._upsert(batch)
            case "net":
                return self._fold()
            case "changes":
                into = f"{self.table} (_batch, _op, _ts, {', '.join(self._columns)})"
                rows = f"SELECT {number}, _op, _ts, {', '.join(self._staged)} FROM staged ORDER BY _ts, _op DESC"
                return [f"INSERT INTO {into} {rows}"]

    def _upsert(self, batch: pa.Table) -> list[str]:
        """Apply the last change of every key.

        Two shards may change the same key; at the same instant, a row is added after its predecessor is retracted.
        """
        key = [self._staged[column] for column in self.output.key or ()]
        order = ", ".join([*key, "_ts DESC", "(_op = '+') DESC"])
        chosen = f"DISTINCT ON ({', '.join(key)})" if key else ""
        last = f"SELECT {chosen} * FROM staged ORDER BY {order} {'' if key else 'LIMIT 1'}"
        matches = self._matches(batch)
        others = [column for column in range(len(self._columns)) if column not in (self.output.key or ())]
        made = [f"CREATE TEMP TABLE latest ON COMMIT DROP AS {last}", "ANALYZE latest"]
        made += [f"DELETE FROM {self.table} AS t USING latest AS l WHERE l._op = '-' AND {match}" for match in matches]
        if others:
            values = ", ".join(f"{self._columns[column]} = l.{self._staged[column]}" for column in others)
            old = ", ".join(f"t.{self._columns[column]}" for column in others)
            new = ", ".join(f"l.{self._staged[column]}" for column in others)
            made += [
                f"UPDATE {self.table} AS t SET {values} FROM latest AS l "
                f"WHERE l._op = '+' AND {match} AND ROW({old}) IS DISTINCT FROM ROW({new})"
                for match in matches
            ]
        absent = " AND ".join(f"NOT EXISTS (SELECT FROM {self.table} AS t WHERE {match})" for match in matches)
        made.append(
            f"INSERT INTO {self.table} ({', '.join(self._columns)}) "
            f"SELECT {', '.join(self._staged)} FROM latest AS l WHERE l._op = '+' AND {absent}"
        )
        return made

    def _matches(self, batch: pa.Table) -> list[str]:
        """Return conditions under which a row of the table has the key of a staged row, one for each set of NULL columns.

        Each can use an index on the key, which IS NOT DISTINCT FROM could not.
        """
        key = self.output.key or ()
        missing = np.zeros(batch.num_rows, np.int64)
        for place, column in enumerate(key):
            missing |= batch.column(column + 2).is_null().to_numpy().astype(np.int64) << place
        return [self._match(key, [bool(mask >> n & 1) for n in range(len(key))]) for mask in np.unique(missing)]

    def _match(self, key: Iterable[int], missing: Iterable[bool]) -> str:
        conditions = [
            f"t.{self._columns[column]} IS NULL AND l.{self._staged[column]} IS NULL"
            if null
            else f"t.{self._columns[column]} = l.{self._staged[column]}"
            for column, null in zip(key, missing, strict=True)
        ]
        return " AND ".join(conditions) or "TRUE"

    def _fold(self) -> list[str]:
        """Add or remove the net number of copies of every row; a row is identified by a 128-bit hash of its text."""
        floats = [pa.types.is_floating(field.dtype) for field in self.output.schema]
        # Adding 0 turns -0.0 into 0.0, so that equal rows have the same hash.
        values = [f"{name} + 0" if is_float else name for name, is_float in zip(self._staged, floats, strict=True)]
        hashed = f"SELECT *, md5(ROW({', '.join(values)})::text)::uuid AS h FROM staged"
        summed = f"SELECT *, sum(CASE _op WHEN '+' THEN 1 ELSE -1 END) OVER (PARTITION BY h) AS n FROM ({hashed}) AS a"
        copies = (
            f"SELECT t.ctid AS found, l.n, row_number() OVER (PARTITION BY l.h) AS place "
            f"FROM {self.table} AS t JOIN netted AS l ON t._hash = l.h WHERE l.n < 0"
        )
        added = f"SELECT h, {', '.join(self._staged)} FROM netted, generate_series(1, n::bigint) WHERE n > 0"
        return [
            f"CREATE TEMP TABLE netted ON COMMIT DROP AS SELECT DISTINCT ON (h) * FROM ({summed}) AS b WHERE n <> 0",
            "ANALYZE netted",
            f"DELETE FROM {self.table} WHERE ctid = ANY (ARRAY(SELECT found FROM ({copies}) AS a WHERE place <= -n))",
            f"INSERT INTO {self.table} (_hash, {', '.join(self._columns)}) {added}",
        ]
