"""Expire: turns the end of a row's life into a negative tuple (paper 1, W-Expire).

Meaning: (row, ts, exp, +) gives (row, ts, FOREVER, +) and, at exp, (row, exp, FOREVER, -).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sash.operators.base import Edge, Operator, merge
from sash.operators.netting import net
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Memory
from sash.state.rows import RowStore


class Expire(Operator):
    """A buffer of live rows over a stamped edge; its output is explicit."""

    def __init__(self, memory: Memory, inputs: tuple[Edge]) -> None:
        (edge,) = inputs
        self._buffer = edge.buffer(memory.scope("buffer"))
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        slots = self._buffer.add(batch.exp)
        self._rows.put(slots, batch.columns)
        expired, times = self._buffer.drain(clock)
        added = ChangeBatch.explicit(batch.ts, batch.sign, batch.columns)
        if not len(expired):
            return added
        removed = ChangeBatch.explicit(times, np.full(len(expired), -1, np.int8), self._rows.take(expired))
        self._rows.free(expired)
        self._buffer.release(expired)
        if not len(batch):
            return removed
        return net(concat([removed, added]).take(merge(times, batch.ts)))

    @property
    def state_rows(self) -> int:
        return self._buffer.live
