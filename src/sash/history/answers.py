"""The answer of a query from changes: those up to an instant are netted, or, in mode `upsert`, the last of each key is taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.netting import net_all
from sash.operators.output_modes import reduce_changes
from sash.plan.options import Mode
from sash.state.change_tables import changes_of
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows

ADDED = 2
"""The number of columns of a change besides those of the row: `_op` and `_ts`."""


def fold(tables: Sequence[pa.Table], mode: Mode, key: tuple[int, ...] | None, until: int | None = None) -> pa.Table:
    """The rows of the answer, as insertions, after all changes in tables, or after those up to an instant.

    >>> table = pa.table({"_op": ["+", "+", "-"], "_ts": [1, 2, 3], "item": ["tea", "jam", "tea"]})
    >>> fold([table], "changes", None).column("item").to_pylist()
    ['jam']
    >>> fold([table], "changes", None, until=2).column("item").to_pylist()
    ['tea', 'jam']
    """
    table = pa.concat_tables(tables)
    changes = changes_of(table)
    if until is not None:
        changes = changes.take(np.flatnonzero(changes.ts <= until))
    left = reduce_changes(changes, "upsert", key) if mode == "upsert" else net_all(changes)
    return as_table(left.take(np.flatnonzero(left.sign > 0)), table.schema)


def in_order(table: pa.Table) -> pa.Table:
    """The changes by time; those of one instant stay in their order. Shards of a large batch come one after the other."""
    ts = table.column(1).cast(pa.int64()).to_numpy()
    return table if (ts[1:] >= ts[:-1]).all() else table.take(pa.array(np.argsort(ts, kind="stable")))


def net_effect(table: pa.Table, mode: Mode, key: tuple[int, ...] | None) -> pa.Table:
    """The changes that have the same effect on an answer as those in a table, without those that cancel out.

    >>> net_effect(pa.table({"_op": ["+", "+", "-"], "_ts": [1, 2, 3], "item": ["tea", "jam", "tea"]}), "net", None).num_rows
    1
    """
    changes = changes_of(table)
    left = reduce_changes(changes, "upsert", key) if mode == "upsert" else net_all(changes)
    return as_table(left, table.schema)


def as_table(changes: ChangeBatch, schema: pa.Schema) -> pa.Table:
    """Changes as a table of a schema that a sink gets."""
    op = pa.array(np.where(changes.sign > 0, "+", "-").tolist(), pa.string())
    ts = pa.array(changes.ts).cast(schema.field(1).type)
    return pa.table([op.cast(schema.field(0).type), ts, *changes.columns], schema=schema)


def encode_table(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def decode_table(data: bytes) -> pa.Table:
    """The table in bytes."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def counted(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """The different rows of an answer without `_op` and `_ts`, sorted by their columns, and how often each occurs."""
    plain = rows.drop_columns(rows.column_names[:ADDED]).combine_chunks()
    if not plain.num_rows or not plain.num_columns:
        return plain, [1] * plain.num_rows
    keys = np.stack(hash_rows([column.chunk(0) for column in plain.columns], plain.num_rows), axis=1)
    _, first, times = np.unique(keys, axis=0, return_index=True, return_counts=True)
    single = plain.take(pa.array(first))
    sortable = [number for number, column in enumerate(single.columns) if _sortable(column.type)]
    if not sortable:
        return single, times.tolist()
    columns = pa.table([single.column(number) for number in sortable], names=list(map(str, sortable)))
    order = pc.sort_indices(columns, [(str(number), "ascending") for number in sortable])
    return single.take(order), times[order.to_numpy()].tolist()


def _sortable(dtype: pa.DataType) -> bool:
    return not pa.types.is_nested(dtype) and not pa.types.is_null(dtype)
