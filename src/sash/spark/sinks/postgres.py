"""A PostgreSQL table that holds the answer. Each batch is one transaction, which also records the batch's number.

The number is in `sash_batches`, in the table's schema. A repeated batch finds its number there and changes nothing, so
every change is applied exactly once, even if the query is killed and started again. In mode upsert the table has one row
per key; in mode net it is a bag, with duplicate rows and a column `_hash` to find them by; in mode changes every change
is appended.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from sash.errors import CatalogError, OptionError, SinkError
from sash.operators.scalar.json_values import to_json
from sash.plan.options import Mode
from sash.plan.types import STRING, is_nested
from sash.secret_references import has_references
from sash.spark.sinks.base import Batch, OutputSpec, Sink, WriteBatch, refuse_added
from sash.spark.sinks.postgres_errors import to_sink_error
from sash.spark.sinks.postgres_sql import Statements, quoted

if TYPE_CHECKING:
    from psycopg import Connection

_NULLS_NOT_DISTINCT = 150_000
"""The first server version that supports NULLS NOT DISTINCT."""


class PostgresTable(Sink):
    """Writes to `table`, or `schema.table`, at the libpq `url` (a password may come from PGPASSWORD or ~/.pgpass).

    `create` (default true) creates the table if it does not exist. `replace` (default false) lets a query that starts anew
    delete the rows of an existing table.
    """

    name = "postgres"
    needed = ("url", "table")
    optional = ("create", "replace")
    flags = ("create", "replace")
    exclusive = True

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        return super().mode(chosen or ("upsert" if keyed else "net"), keyed)

    def check(self, output: OutputSpec) -> None:
        refuse_added("postgres", output.names, _made(self.options, output).own_columns)
        try:
            from psycopg.conninfo import conninfo_to_dict
            from psycopg.errors import Error
        except ImportError:  # the job may run on another machine
            return
        if has_references(self.options["url"]):
            return
        try:
            conninfo_to_dict(str(self.options["url"]))
        except Error as problem:
            raise OptionError(f"the option url of postgres: {str(problem).strip().splitlines()[0]}") from None

    def connect(self, output: OutputSpec) -> None:
        table = self._table(output)
        with table.transaction() as connection:
            table.check(connection, create=self.flag("create", True), replace=self.flag("replace", False))

    def _table(self, output: OutputSpec) -> _Table:
        return _made(self.resolved, output)

    def open(self, output: OutputSpec) -> WriteBatch:
        table = self._table(output)
        with table.transaction() as connection:
            table.prepare(connection, create=self.flag("create", True), replace=self.flag("replace", False))

        def write(batch: Batch, number: int) -> None:
            rows = batch.table
            with table.transaction() as connection:
                table.apply(connection, rows, number)

        return write


def _made(options: Mapping[str, Any], output: OutputSpec) -> _Table:
    return _Table(str(options["url"]), str(options["table"]), output)


class _Table:
    """The table that holds the output of a query."""

    def __init__(self, url: str, table: str, output: OutputSpec) -> None:
        parts = table.split(".")
        if len(parts) > 2 or not all(parts):
            raise OptionError(f"{table!r} is not the name of a table: write table or schema.table")
        self._url = url
        self._shown = table
        self._identity = output.identity
        self._names = output.names
        self._table = ".".join(quoted(part) for part in parts)
        self._batches = ".".join(quoted(part) for part in (*parts[:-1], "sash_batches")).replace("%", "%%")
        self._statements = Statements(self._table, output)

    @property
    def own_columns(self) -> Iterable[str]:
        """The columns that the table has besides those of the query."""
        return self._statements.own_columns

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """Connect, and commit when the block ends without an error."""
        try:
            import psycopg
        except ImportError:
            raise SinkError("the postgres sink needs psycopg: pip install 'sash[postgres]'") from None
        try:
            with psycopg.connect(self._url, connect_timeout=10) as connection:
                connection.execute("SET TimeZone TO 'UTC'")
                connection.execute("SET DateStyle TO 'ISO'")
                yield connection
        except psycopg.Error as problem:
            raise to_sink_error(problem, self._shown) from problem

    def check(self, connection: Connection[Any], *, create: bool, replace: bool) -> None:
        """Check what `prepare` needs, without a change."""
        if self._oid(connection) is None:
            self._refuse_absent(create)
            return
        self._check_columns(connection)
        kept = connection.execute("SELECT to_regclass(%s)", [self._batches.replace("%%", "%")]).fetchone()
        self._check_owner(connection, None if kept in (None, (None,)) else self._recorded(connection), replace)

    def _refuse_absent(self, create: bool) -> None:
        if not create:
            raise CatalogError(f"there is no table {self._shown}: create it, or remove the option `create false`")

    def prepare(self, connection: Connection[Any], *, create: bool, replace: bool) -> None:
        """Create the table if needed; check its columns, and that its rows are those that this query wrote before, if any."""
        if self._oid(connection) is None:
            self._refuse_absent(create)
            supported = connection.info.server_version >= _NULLS_NOT_DISTINCT
            for statement in self._statements.create(nulls_not_distinct=supported):
                connection.execute(statement)
        self._check_columns(connection)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._batches.replace('%%', '%')} (target text PRIMARY KEY, identity text NOT NULL,"
            " table_oid bigint NOT NULL, batch bigint NOT NULL, written timestamptz NOT NULL DEFAULT now())"
        )
        if self._check_owner(connection, self._recorded(connection, "FOR UPDATE"), replace):
            return
        connection.execute(f"DELETE FROM {self._table}")
        connection.execute(
            f"INSERT INTO {self._batches} (target, identity, table_oid, batch) VALUES (%s, %s, %s, -1) ON CONFLICT (target) "
            "DO UPDATE SET identity = excluded.identity, table_oid = excluded.table_oid, batch = -1, written = now()",
            [self._shown, self._identity, self._oid(connection)],
        )

    def _recorded(self, connection: Connection[Any], lock: str = "") -> Any:
        """What is recorded of the table: the query that wrote it, its id, and the last batch; None if nothing is."""
        return connection.execute(
            f"SELECT identity, table_oid, batch FROM {self._batches} WHERE target = %s {lock}", [self._shown]
        ).fetchone()

    def _check_owner(self, connection: Connection[Any], recorded: Any, replace: bool) -> bool:
        """Whether this query wrote the table before; raise CatalogError if the table has rows of something else."""
        if recorded is not None and recorded[0] == self._identity:
            if recorded[1] != self._oid(connection):
                raise CatalogError(
                    f"table {self._shown} was dropped and created again after batch {recorded[2]} was written to it: start the "
                    "query with a new checkpoint"
                )
            return True
        if not replace and connection.execute(f"SELECT 1 FROM {self._table} LIMIT 1").fetchone() is not None:
            found = "rows that no query of Sash wrote" if recorded is None else "the answer of another checkpoint"
            raise CatalogError(
                f"table {self._shown} has {found}: use the checkpoint that wrote it, choose another table, or set "
                "`replace true` to delete its rows"
            )
        return False

    def apply(self, connection: Connection[Any], rows: pa.Table, number: int) -> None:
        """Apply a batch to the table, unless it has been applied before."""
        recorded = connection.execute(
            f"SELECT batch FROM {self._batches} WHERE target = %s AND identity = %s FOR UPDATE",
            [self._shown, self._identity],
        ).fetchone()
        if recorded is None:
            raise SinkError(f"table {self._shown} now belongs to another query: stop that one, or choose another table")
        if number <= recorded[0]:
            return
        if rows.num_rows:
            connection.execute(self._statements.stage())
            with connection.cursor() as cursor, cursor.copy("COPY staged FROM STDIN (FORMAT csv)") as copy:
                for text in _to_csv(rows):
                    copy.write(text)
            for statement in self._statements.apply(rows, number):
                connection.execute(statement)
        connection.execute(
            f"UPDATE {self._batches} SET batch = %s, written = now() WHERE target = %s", [number, self._shown]
        )

    def _check_columns(self, connection: Connection[Any]) -> None:
        columns = [
            column.name for column in connection.execute(f"SELECT * FROM {self._table} LIMIT 0").description or []
        ]
        for name in [*self._statements.own_columns, *self._names]:
            if name not in columns:
                raise CatalogError(
                    f"table {self._shown} has no column {name}, which this output mode needs; it has {', '.join(columns)}: choose "
                    "another table, or drop this one and let the query create it"
                )

    def _oid(self, connection: Connection[Any]) -> int | None:
        row = connection.execute("SELECT to_regclass(%s)::oid::bigint", [self._table]).fetchone()
        return None if row is None else row[0]


def _to_csv(rows: pa.Table) -> Iterator[bytes]:
    """Write the rows as CSV for COPY: every value is quoted, and NULL is empty."""
    columns = [_plain(column) for column in rows.columns]
    plain = pa.table(columns, names=[f"c{position}" for position in range(len(columns))])
    options = pacsv.WriteOptions(include_header=False, quoting_style="all_valid")
    for batch in plain.to_batches(max_chunksize=50_000):
        text = io.BytesIO()
        pacsv.write_csv(batch, text, options)
        yield text.getvalue()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column of values that CSV has."""
    if pa.types.is_duration(column.type):
        return pc.binary_join_element_wise(column.cast(pa.int64()).cast(pa.string()), "microseconds", " ")
    if is_nested(column.type):
        return to_json([column.combine_chunks()], STRING)
    return _to_hex(column) if pa.types.is_binary(column.type) else column


def _to_hex(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if v is None else f"\\x{v.hex()}" for v in column.to_pylist()], pa.string())
