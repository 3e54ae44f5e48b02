"""Operations on tables of rows: times, sort order, and the net effect of changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.netting import net_all
from sash.plan.nodes import SortKey
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints
from sash.state.ordering import encode_order
from sash.window_store.store.layout import TIME


def times(rows: pa.Table) -> Ints:
    """The times of the rows, in microseconds."""
    return np.asarray(rows.column(TIME).to_numpy(), np.int64)


def columns_of(rows: pa.Table) -> list[pa.Array]:
    """The columns, each as one contiguous array."""
    return [
        column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.array([], column.type), *column.chunks])
        for column in rows.columns
    ]


def net_changes(parts: Sequence[pa.Table]) -> pa.Table:
    """The changes in all parts, without those that cancel out."""
    changes = pa.concat_tables(parts)
    _, sign, *columns = columns_of(changes)
    signs = np.array(sign.to_numpy(zero_copy_only=False), np.int8)
    batch = net_all(ChangeBatch.explicit(times(changes), signs, columns))
    return pa.Table.from_arrays([pa.array(batch.ts), pa.array(batch.sign), *batch.columns], schema=changes.schema)


def sort_bytes(columns: Sequence[pa.Array], order: Sequence[SortKey], rows: int) -> pa.Array:
    """Byte strings that sort like the rows. Columns without a sort key come last, ascending with NULLs first."""
    named = {key.column for key in order}
    full = [*order, *(SortKey(column) for column in range(len(columns)) if column not in named)]
    offsets, data = encode_order(
        [columns[key.column] for key in full], [key.descending for key in full], [key.nulls_first for key in full], rows
    )
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), rows, buffers)


def sort_positions(columns: Sequence[pa.Array], order: Sequence[SortKey] = ()) -> Ints:
    """The positions of the rows in sort order."""
    keys = sort_bytes(columns, order, len(columns[0]))
    return np.array(pc.array_sort_indices(keys).to_numpy(), np.int64)
