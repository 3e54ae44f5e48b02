"""A Delta table, written by delta-rs (the package deltalake), which needs no Spark job for a batch.

In mode upsert the table holds the answer: a batch is a MERGE by key. In the modes changes and net, changes are appended. The
number of the batch is in the transaction of the commit (`txn`), which readers and writers of Delta tables know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.errors import CatalogError, SinkError
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.lakehouse import GONE, LakehouseSink, Table

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

_STORAGE = ("aws_", "azure_", "google_", "s3_", "gcs_")


class Delta(LakehouseSink):
    """Writes to the Delta table at `path`, local or in an object store; its settings, such as `aws_region`, are options."""

    name = "delta"
    needed = ("path",)

    def accepts(self, option: str) -> bool:
        return option.lower().startswith(_STORAGE)

    def _table(self, output: OutputSpec) -> Table:
        options = self.resolved
        storage = {name: value for name, value in options.items() if self.accepts(name)}
        return _Delta(options["path"], storage, f"sash-{output.identity}")

    def _stored(self, dtype: pa.DataType) -> pa.DataType:
        return dtype


class _Delta:
    def __init__(self, path: str, storage: dict[str, str], identity: str) -> None:
        self._path = path.removeprefix("file://")
        self._storage = storage
        self._identity = identity
        self._opened: DeltaTable | None = None

    @property
    def _known(self) -> DeltaTable:
        assert self._opened is not None
        return self._opened

    def columns(self) -> pa.Schema | None:
        with _errors(self._path):
            from deltalake import DeltaTable

            if not DeltaTable.is_deltatable(self._path, self._storage):
                return None
            self._opened = DeltaTable(self._path, storage_options=self._storage)
            return pa.schema(self._opened.schema().to_arrow())

    def create(self, schema: pa.Schema) -> None:
        with _errors(self._path):
            from deltalake import DeltaTable

            self._opened = DeltaTable.create(self._path, schema, storage_options=self._storage)

    def add(self, fields: list[pa.Field]) -> None:
        with _errors(self._path):
            from deltalake import Schema

            self._known.alter.add_columns(Schema.from_arrow(pa.schema(fields)).fields)

    def written(self) -> int | None:
        with _errors(self._path):
            self._known.update_incremental()
            return self._known.transaction_version(self._identity)

    def empty(self) -> bool:
        return not self._known.file_uris()

    def clear(self) -> None:
        with _errors(self._path):
            self._known.delete(commit_properties=self._commit(-1))

    def append(self, rows: pa.Table, number: int) -> None:
        with _errors(self._path):
            from deltalake import write_deltalake

            write_deltalake(self._known, self._padded(rows), mode="append", commit_properties=self._commit(number))

    def merge(self, rows: pa.Table, keys: list[str], number: int) -> None:
        columns = {_name("t", name): _name("s", name) for name in rows.column_names if name != GONE}
        same = " AND ".join(f"({_name('t', key)} IS NOT DISTINCT FROM {_name('s', key)})" for key in keys) or "true"
        with _errors(self._path):
            merger = self._known.merge(
                rows, same, source_alias="s", target_alias="t", commit_properties=self._commit(number)
            )
            merger = merger.when_matched_delete(f"s.{GONE}").when_matched_update(columns)
            merger.when_not_matched_insert(columns, f"NOT s.{GONE}").execute()

    def compact(self, retain: float) -> None:
        with _errors(self._path):
            self._known.optimize.compact()
            self._known.vacuum(int(retain // 3600), dry_run=False, enforce_retention_duration=False)

    def _padded(self, rows: pa.Table) -> pa.Table:
        """The rows with NULL in columns that only the table has."""
        schema = pa.schema(self._known.schema().to_arrow())
        for field in schema:
            if field.name not in rows.column_names:
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        return rows

    def _commit(self, number: int) -> CommitProperties:
        from deltalake import CommitProperties, Transaction

        return CommitProperties(app_transactions=[Transaction(self._identity, number)])


def _name(side: str, column: str) -> str:
    quoted = column.replace('"', '""')
    return f'{side}."{quoted}"'


@contextmanager
def _errors(path: str) -> Iterator[Any]:
    """Turn delta-rs' errors into those of a sink; a commit that another writer has overtaken is tried again."""
    try:
        from deltalake import exceptions
    except ImportError:
        raise SinkError("the delta sink needs deltalake: pip install 'sash[delta]'") from None
    try:
        yield
    except exceptions.CommitFailedError as problem:
        raise SinkError(f"Delta table {path}: {problem}", transient=True) from problem
    except (exceptions.SchemaMismatchError, exceptions.TableNotFoundError) as problem:
        raise CatalogError(f"Delta table {path}: {problem}") from problem
    except exceptions.DeltaError as problem:
        raise SinkError(f"Delta table {path}: {problem}") from problem
