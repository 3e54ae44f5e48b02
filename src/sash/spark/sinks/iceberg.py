"""An Iceberg table of any catalog that PyIceberg knows (REST, SQL, Hive, Glue), written by PyIceberg without a Spark job.

In mode upsert the table holds the answer: a batch replaces the files that have rows of its keys (copy on write). In the modes
changes and net, changes are appended. A batch is one snapshot. Its number is in the properties of the snapshot, for readers,
and in those of the table, which outlive snapshots; both are committed at once.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.errors import CatalogError, SinkError
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.lakehouse import GONE, LakehouseSink, Table
from sash.state.hashing import Keys, hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import FileScanTask
    from pyiceberg.table import Table as IcebergTable

_CATALOG = ("type", "uri", "warehouse", "credential", "token")
_SMALL, _LARGE = 16 << 20, 128 << 20
"""Files below the first size are compacted, to files of about the second."""
_FEW_VALUES = 200
"""PyIceberg uses the bounds of a file's columns for so many values at most."""
_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest-merge.enabled": "true",
}
"""A commit writes the metadata anew; without these, every version of it would be kept."""


class Iceberg(LakehouseSink):
    """Writes to the table `table` ("namespace.name") of the catalog `catalog` in PyIceberg's settings.

    The catalog may also be described by its properties as options, such as `uri` and `warehouse`.
    """

    name = "iceberg"
    needed = ("table",)
    optional = ("catalog", *LakehouseSink.optional)

    def accepts(self, option: str) -> bool:
        return option in _CATALOG or "." in option

    def _table(self, output: OutputSpec) -> Table:
        options = self.resolved
        properties = {name: value for name, value in options.items() if self.accepts(name)}
        return _Iceberg(options["table"], options.get("catalog"), properties, output.identity)

    def _stored(self, dtype: pa.DataType) -> pa.DataType:
        return pa.int32() if dtype in (pa.int8(), pa.int16()) else dtype


class _Iceberg:
    def __init__(self, name: str, catalog: str | None, properties: dict[str, str], identity: str) -> None:
        self._name = name
        self._catalog_name = catalog
        self._properties = properties
        self._identity = identity
        self._opened: IcebergTable | None = None

    @property
    def _known(self) -> IcebergTable:
        assert self._opened is not None
        return self._opened

    @property
    def _recorded(self) -> str:
        return f"sash.batch.{self._identity}"

    def _catalog(self) -> Catalog:
        from pyiceberg.catalog import load_catalog

        return load_catalog(self._catalog_name or "sash", **self._properties)

    def columns(self) -> pa.Schema | None:
        with _errors(self._name):
            catalog = self._catalog()
            if not catalog.table_exists(self._name):
                return None
            self._opened = catalog.load_table(self._name)
            return self._opened.schema().as_arrow()

    def create(self, schema: pa.Schema) -> None:
        with _errors(self._name):
            catalog = self._catalog()
            catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
            self._opened = catalog.create_table(self._name, schema, properties=_PROPERTIES)

    def add(self, fields: list[pa.Field]) -> None:
        with _errors(self._name), self._known.update_schema() as update:
            update.union_by_name(pa.schema(fields))

    def written(self) -> int | None:
        with _errors(self._name):
            found = self._known.refresh().properties.get(self._recorded)
            return None if found is None else int(found)

    def empty(self) -> bool:
        return not any(True for _ in self._known.scan().plan_files())

    def clear(self) -> None:
        with _errors(self._name):
            self._replace(list(self._known.scan().plan_files()), [], -1)

    def append(self, rows: pa.Table, number: int) -> None:
        with _errors(self._name):
            self._replace([], [rows], number)

    def merge(self, rows: pa.Table, keys: list[str], number: int) -> None:
        with _errors(self._name):
            changed = Interner(HeapMemory())
            changed.intern(*_hashes(rows, keys, rows.schema))
            replaced, kept = [], []
            for task in self._known.scan(row_filter=_may_match(rows, keys)).plan_files():
                found = self._read([task]).select(self._known.schema().as_arrow().names)
                stays = changed.find(*_hashes(found, keys, rows.schema)) < 0
                if not stays.all():
                    replaced.append(task)
                    kept.append(found.filter(pa.array(stays)))
            there = rows.filter(pa.array(~rows[GONE].to_numpy())).drop_columns([GONE])
            self._replace(replaced, [*kept, there], number)

    def compact(self, retain: float) -> None:
        with _errors(self._name):
            small: list[FileScanTask] = []
            for task in self._known.scan().plan_files():
                if task.file.file_size_in_bytes < _SMALL and not task.delete_files:
                    small.append(task)
                if sum(task.file.file_size_in_bytes for task in small) > _LARGE:
                    break
            if len(small) > 1:
                self._replace(small, [self._read(small)], None)
            before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=retain)
            self._known.maintenance.expire_snapshots().older_than(before).commit()

    def _read(self, tasks: Sequence[FileScanTask]) -> pa.Table:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        table = self._known
        return ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(tasks)

    def _replace(self, tasks: Sequence[FileScanTask], parts: Sequence[pa.Table], number: int | None) -> None:
        """Replace the files of these tasks by files with these rows, in one commit, which has the number of the batch."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        described = {"sash-query": self._identity, **({} if number is None else {"sash-batch": str(number)})}
        schema = self._known.schema().as_arrow()
        rows = pa.concat_tables([_as_stored(part, schema) for part in parts]) if parts else schema.empty_table()
        with self._known.transaction() as transaction:
            snapshot = transaction.update_snapshot(described)
            with snapshot.overwrite() if tasks else snapshot.merge_append() as update:
                for task in tasks:
                    update.delete_data_file(task.file)
                if rows.num_rows:
                    for file in _dataframe_to_data_files(transaction.table_metadata, rows, self._known.io):
                        update.append_data_file(file)
            if number is not None:
                transaction.set_properties({self._recorded: str(number)})


def _as_stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of the table, NULL where they have none."""
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _hashes(rows: pa.Table, keys: list[str], schema: pa.Schema) -> Keys:
    """The keys of rows, in the types of a schema, as hashes; rows without a key all have the same."""
    if not keys or not rows.num_rows:
        return np.zeros(rows.num_rows, np.uint64), np.zeros(rows.num_rows, np.uint64)
    columns = (rows[key].cast(schema.field(key).type) for key in keys)
    return hash_rows([pa.concat_arrays(column.chunks) for column in columns], rows.num_rows)


def _may_match(rows: pa.Table, keys: list[str]) -> BooleanExpression:
    """A filter that all rows of these keys pass, to find the files which may have them."""
    from pyiceberg.expressions import AlwaysTrue, And, In, IsNull, Or, Reference

    found: BooleanExpression = AlwaysTrue()
    for key in keys:
        dtype = rows.schema.field(key).type
        values = rows[key].unique() if pa.types.is_integer(dtype) or pa.types.is_string(dtype) else None
        if values is None or len(values) > _FEW_VALUES:
            continue
        known = [value for value in values.to_pylist() if value is not None]
        one: BooleanExpression = In(term=Reference(key), values=set(known))
        found = And(found, Or(one, IsNull(term=Reference(key))) if values.null_count else one)
    return found


@contextmanager
def _errors(name: str) -> Iterator[Any]:
    """Turn PyIceberg's errors into those of a sink; a commit that another writer has overtaken is tried again."""
    try:
        from pyiceberg import exceptions
    except ImportError:
        raise SinkError("the iceberg sink needs PyIceberg: pip install 'sash[iceberg]'") from None
    try:
        yield
    except (exceptions.CommitFailedException, exceptions.ServiceUnavailableError, exceptions.ServerError) as problem:
        raise SinkError(f"Iceberg table {name}: {problem}", transient=True) from problem
    except (exceptions.NoSuchNamespaceError, exceptions.NoSuchTableError, exceptions.ValidationError) as problem:
        raise CatalogError(f"Iceberg table {name}: {problem}") from problem
    except exceptions.RESTError as problem:
        raise SinkError(f"Iceberg table {name}: {problem}") from problem
