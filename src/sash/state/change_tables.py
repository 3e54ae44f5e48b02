"""Changes as sinks get them: tables with `_op`, `_ts` and the columns of the row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.state.changes import ChangeBatch


def changes_of(table: pa.Table) -> ChangeBatch:
    """The changes in a table that a sink gets."""
    op, ts, *columns = (_one_chunk(column) for column in table.columns)
    sign = np.where(op.to_numpy(zero_copy_only=False) == "+", 1, -1).astype(np.int8)
    return ChangeBatch.explicit(ts.cast(pa.int64()).to_numpy(zero_copy_only=False).copy(), sign, columns)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
