"""Lifetime: rows begin later or end earlier than below, at times that are computed from them.

Meaning: (row, ts, exp, +) gives (row, max(ts, start), min(exp, end), +), or nothing if that is empty or a time is NULL. A
row that begins at the clock or later waits in a calendar by its start, so that what a batch costs follows the rows that
begin in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator, merge
from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.calendar import CalendarBuffer
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore


class Lifetime(Operator):
    """Keeps the rows that have not begun; without `start` it is stateless. Input and output are stamped."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], start: Expression | None, end: Expression | None) -> None:
        (edge,) = inputs
        self._start, self._end = start, end
        if start is not None:
            self._starts = CalendarBuffer(memory.scope("starts"), edge.partitions, edge.width)
            self._rows = RowStore(memory.scope("rows"), edge.dtypes)
            self._ends = Arrays(memory, {"ends": np.int64})

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        if len(batch):
            batch = self._narrowed(batch)
        if self._start is None:
            return batch
        later = batch.ts >= clock
        if later.any():
            self._wait(batch.take(np.flatnonzero(later)))
            batch = batch.take(np.flatnonzero(~later))
        batch = batch.sorted()
        begun, times = self._starts.drain(clock)
        if not len(begun):
            return batch
        waited = ChangeBatch.stamped(times, self._ends["ends"][begun], self._rows.take(begun))
        self._rows.free(begun)
        self._starts.release(begun)
        return concat([waited, batch]).take(merge(times, batch.ts)) if len(batch) else waited

    def _narrowed(self, batch: ChangeBatch) -> ChangeBatch:
        """The rows with the times between which they are valid; those that never are are left out."""
        ts, exp, valid = batch.ts, batch.exp, np.ones(len(batch), bool)
        if self._start is not None:
            start, known = _times(self._start, batch)
            ts, valid = np.maximum(ts, start), valid & known
        if self._end is not None:
            end, known = _times(self._end, batch)
            exp, valid = np.minimum(exp, end), valid & known
        valid &= exp > ts
        narrowed = ChangeBatch(ts, exp, batch.sign, batch.columns)
        return narrowed if valid.all() else narrowed.take(np.flatnonzero(valid))

    def _wait(self, rows: ChangeBatch) -> None:
        slots = self._starts.add(rows.ts)
        self._ends.reserve(self._starts.capacity)
        self._ends["ends"][slots] = rows.exp
        self._rows.put(slots, rows.columns)

    @property
    def state_rows(self) -> int:
        return 0 if self._start is None else self._starts.live


def _times(expression: Expression, batch: ChangeBatch) -> tuple[Ints, Ints]:
    """The values in microseconds, and which of them are not NULL."""
    values = evaluate(expression, batch.columns, len(batch)).view(pa.int64())
    return values.fill_null(0).to_numpy(), values.is_valid().to_numpy(zero_copy_only=False)
