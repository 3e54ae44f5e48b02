"""A PostgreSQL table that is the answer, batch by batch: each is one transaction, which also notes the batch's number.

The note is in `sash_batches`, in the table's schema. A batch that comes again finds its number there and changes nothing;
so a query that is killed at any moment and started again leaves every change in the table exactly once. In mode upsert
the table has a row per key; in mode net it is a bag, duplicates as duplicate rows, with a column `_hash` to find them
by; in mode changes it grows by every change.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pacsv

from sash.errors import CatalogError, SinkError
from sash.spark.output import Mode
from sash.spark.stores.base import Answer, Store, Write
from sash.spark.stores.postgres_sql import Statements, quoted

if TYPE_CHECKING:
    from psycopg import Connection
    from pyspark.sql import DataFrame

_TRIES = 4
_NULLS_NOT_DISTINCT = 150_000
"""The first version of the server that has it."""


class PostgresTable(Store):
    """`url` is libpq's (a password may come from PGPASSWORD or ~/.pgpass), `table` may have a schema before a dot.

    `create` (true unless told otherwise) makes the table if there is none; `replace` lets a query that starts anew empty
    a table that has rows.
    """

    name = "postgres"
    needed = ("url", "table")
    optional = ("create", "replace")

    def mode(self, asked: str | None, keyed: bool) -> Mode:
        return super().mode(asked or ("upsert" if keyed else "net"), keyed)

    def open(self, answer: Answer) -> Write:
        table = _Table(str(self.options["url"]), str(self.options["table"]), answer)
        with table.transaction() as connection:
            table.prepare(connection, create=self.flag("create", True), replace=self.flag("replace", False))

        def write(batch: DataFrame, number: int) -> None:
            rows = batch.toArrow()
            for attempt in range(_TRIES):
                try:
                    with table.transaction() as connection:
                        table.apply(connection, rows, number)
                except SinkError as problem:
                    if not problem.passing or attempt == _TRIES - 1:
                        raise
                    time.sleep(2**attempt)
                else:
                    return

        return write


class _Table:
    """The table, and the answer that it is to hold."""

    def __init__(self, url: str, table: str, answer: Answer) -> None:
        parts = table.split(".")
        if len(parts) > 2 or not all(parts):
            raise CatalogError(f"{table!r} is no name of a table: write it as table or schema.table")
        self._url = url
        self._shown = table
        self._identity = answer.identity
        self._names = answer.names
        self._table = ".".join(quoted(part) for part in parts)
        self._notes = ".".join(quoted(part) for part in (*parts[:-1], "sash_batches")).replace("%", "%%")
        self._statements = Statements(self._table, answer)

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """A connection whose work is done as a whole, or not at all."""
        try:
            import psycopg
        except ImportError:
            raise CatalogError("the postgres sink needs psycopg: pip install 'sash[postgres]'") from None
        try:
            with psycopg.connect(self._url, connect_timeout=10) as connection:
                connection.execute("SET TimeZone TO 'UTC'")
                connection.execute("SET DateStyle TO 'ISO'")
                yield connection
        except psycopg.Error as problem:
            said = str(problem).strip().splitlines() or [type(problem).__name__]
            passing = isinstance(problem, psycopg.OperationalError)
            raise SinkError(f"PostgreSQL, table {self._shown}: {said[0]}", passing=passing) from problem

    def prepare(self, connection: Connection[Any], *, create: bool, replace: bool) -> None:
        """Make the table ready: it is there, has the columns, and holds what this query wrote before, or nothing."""
        if self._oid(connection) is None:
            if not create:
                raise CatalogError(f"there is no table {self._shown}: create it, or leave out `create false`")
            modern = connection.info.server_version >= _NULLS_NOT_DISTINCT
            for statement in self._statements.create(nulls_not_distinct=modern):
                connection.execute(statement)
        self._check_columns(connection)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._notes.replace('%%', '%')} (target text PRIMARY KEY, identity text NOT NULL,"
            " table_oid bigint NOT NULL, batch bigint NOT NULL, written timestamptz NOT NULL DEFAULT now())"
        )
        oid = self._oid(connection)
        noted = connection.execute(
            f"SELECT identity, table_oid, batch FROM {self._notes} WHERE target = %s FOR UPDATE", [self._shown]
        ).fetchone()
        if noted is not None and noted[0] == self._identity:
            if noted[1] != oid:
                raise CatalogError(
                    f"table {self._shown} is not the one that batch {noted[2]} was written to: it was made anew since. "
                    "Start the query with a new checkpoint"
                )
            return
        if not replace and connection.execute(f"SELECT 1 FROM {self._table} LIMIT 1").fetchone() is not None:
            whose = "rows that no query of Sash wrote" if noted is None else "the answer of another checkpoint"
            raise CatalogError(
                f"table {self._shown} has {whose}: go on with the checkpoint that wrote it, name another table, or say "
                "`replace true` to empty it"
            )
        connection.execute(f"DELETE FROM {self._table}")
        connection.execute(
            f"INSERT INTO {self._notes} (target, identity, table_oid, batch) VALUES (%s, %s, %s, -1) ON CONFLICT (target) "
            "DO UPDATE SET identity = excluded.identity, table_oid = excluded.table_oid, batch = -1, written = now()",
            [self._shown, self._identity, oid],
        )

    def apply(self, connection: Connection[Any], rows: pa.Table, number: int) -> None:
        """Bring the table up to date with a batch, unless it already is."""
        noted = connection.execute(
            f"SELECT batch FROM {self._notes} WHERE target = %s AND identity = %s FOR UPDATE",
            [self._shown, self._identity],
        ).fetchone()
        if noted is None:
            raise SinkError(f"table {self._shown} now belongs to another query; this one stops")
        if number <= noted[0]:
            return
        if rows.num_rows:
            connection.execute(self._statements.stage())
            with connection.cursor() as cursor, cursor.copy("COPY staged FROM STDIN (FORMAT csv)") as copy:
                for text in csv_of(rows):
                    copy.write(text)
            for statement in self._statements.follow(rows, number):
                connection.execute(statement)
        connection.execute(
            f"UPDATE {self._notes} SET batch = %s, written = now() WHERE target = %s", [number, self._shown]
        )

    def _check_columns(self, connection: Connection[Any]) -> None:
        there = [column.name for column in connection.execute(f"SELECT * FROM {self._table} LIMIT 0").description or []]
        for name in [*self._statements.own_columns, *self._names]:
            if name not in there:
                raise CatalogError(
                    f"table {self._shown} has no column {name}, which the answer needs in this mode; it has "
                    f"{', '.join(there)}"
                )

    def _oid(self, connection: Connection[Any]) -> int | None:
        row = connection.execute("SELECT to_regclass(%s)::oid::bigint", [self._table]).fetchone()
        return None if row is None else row[0]


def csv_of(rows: pa.Table) -> Iterator[bytes]:
    """The rows as PostgreSQL reads them: every value in quotes, NULL as nothing."""
    columns = [_as_text(column) for column in rows.columns]
    plain = pa.table(columns, names=[f"c{position}" for position in range(len(columns))])
    options = pacsv.WriteOptions(include_header=False, quoting_style="all_valid")
    for batch in plain.to_batches(max_chunksize=50_000):
        text = io.BytesIO()
        pacsv.write_csv(batch, text, options)
        yield text.getvalue()


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes in hexadecimal; all else as Arrow writes it."""
    if not pa.types.is_binary(column.type):
        return column
    return pa.chunked_array(
        [pa.array([None if v is None else f"\\x{v.hex()}" for v in column.to_pylist()], pa.string())]
    )
