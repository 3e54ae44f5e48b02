"""Rows in order: byte strings that sort as the rows do, and positions by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.plan.nodes import SortKey
from sash.state.memory import Ints
from sash.state.ordering import encode_order


def sort_bytes(columns: Sequence[pa.Array], order: Sequence[SortKey], rows: int) -> pa.Array:
    """Byte strings that sort as the rows do; columns that the order does not name come last, ascending, NULLs first."""
    named = {key.column for key in order}
    full = [*order, *(SortKey(column) for column in range(len(columns)) if column not in named)]
    offsets, data = encode_order(
        [columns[key.column] for key in full],
        [key.descending for key in full],
        [key.nulls_first for key in full],
        rows,
    )
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), rows, buffers)


def order_of(columns: Sequence[pa.Array], order: Sequence[SortKey] = ()) -> Ints:
    """The positions of the rows, in order."""
    keys = sort_bytes(columns, order, len(columns[0]))
    return np.array(pc.array_sort_indices(keys).to_numpy(), np.int64)
