"""Expire: turns expirations into retractions, the negative tuples of paper 1 (W-Expire).

Meaning: (row, ts, exp, +) gives (row, ts, FOREVER, +) and, at exp, (row, exp, FOREVER, -). `with_expiration` appends exp
to the row as a last column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator, merge
from sash.operators.netting import net
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Ints, Memory
from sash.state.rows import RowStore


class Expire(Operator):
    """A buffer of live rows over a stamped edge; its output is explicit."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], with_expiration: bool = False) -> None:
        (edge,) = inputs
        self._with_expiration = with_expiration
        self._buffer = edge.buffer(memory.scope("buffer"))
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        slots = self._buffer.add(batch.exp)
        self._rows.put(slots, batch.columns)
        expired, times = self._buffer.drain(clock)
        added = ChangeBatch.explicit(batch.ts, batch.sign, self._columns(batch.columns, batch.exp))
        if not len(expired):
            return added
        taken = self._columns(self._rows.take(expired), times)
        removed = ChangeBatch.explicit(times, np.full(len(expired), -1, np.int8), taken)
        self._rows.free(expired)
        self._buffer.release(expired)
        if not len(batch):
            return removed
        return net(concat([removed, added]).take(merge(times, batch.ts)))

    def _columns(self, columns: Sequence[pa.Array], exp: Ints) -> Sequence[pa.Array]:
        return [*columns, pa.array(exp)] if self._with_expiration else columns

    @property
    def state_rows(self) -> int:
        return self._buffer.live
