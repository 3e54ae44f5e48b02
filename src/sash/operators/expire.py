"""Expire: turns expirations into retractions, the negative tuples of paper 1 (W-Expire).

Meaning: (row, ts, exp, +) gives (row, ts, FOREVER, +) and, at exp, (row, exp, FOREVER, -). `with_expiration` appends exp
to the row as a last column. On a strict edge a row that ends prematurely is retracted then, with the same last column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator, merge
from sash.operators.live_rows import LiveRows, RowEvents, rows_at
from sash.operators.netting import net
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore


class Expire(Operator):
    """A buffer of live rows over a stamped edge; its output is explicit."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], with_expiration: bool = False) -> None:
        (edge,) = inputs
        self._with_expiration = with_expiration
        self._strict = _StrictRows(memory, edge) if edge.expiry == "strict" else None
        self._buffer = edge.buffer(memory.scope("buffer"))
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        if self._strict is not None:
            events, columns, exp = self._strict.apply(batch, clock)
            return net(ChangeBatch.explicit(events.ts, events.sign, self._columns(columns, exp)))
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
        return self._buffer.live if self._strict is None else self._strict.live


class _StrictRows:
    """The live rows of a strict edge, which end at their expiration times or earlier by retractions."""

    def __init__(self, memory: Memory, edge: Edge) -> None:
        self._live = LiveRows(memory.scope("live"), edge, nulls=True)
        self._contents = RowStore(memory.scope("contents"), edge.dtypes)
        self._ends = Arrays(memory, {"ends": np.int64})

    def apply(self, batch: ChangeBatch, clock: int) -> tuple[RowEvents, list[pa.Array], Ints]:
        """The events up to the clock, with the columns and the expiration times of their rows."""
        events, arrived, slots = self._live.apply(batch, clock)
        self._contents.put(slots, rows_at(batch, arrived))
        self._ends.reserve(self._live.capacity)
        self._ends["ends"][slots] = batch.exp[arrived]
        columns, exp = self._contents.take(events.items), self._ends["ends"][events.items]
        gone = events.items[events.sign < 0]
        self._contents.free(gone)
        self._live.release(gone)
        return events, columns, exp

    @property
    def live(self) -> int:
        """The number of live rows."""
        return self._live.live
