"""The count window: the last n rows of a stream, or of each of its partitions (paper 4, 3.6).

Meaning: rows are ordered by ts and, at one instant, by all their columns. (row, ts, FOREVER, +) gives itself and, when
the n-th row after it (of its partition, with NULLs equal) arrives at ts' > ts, (row, ts', FOREVER, -). A row whose n-th
follower arrives at the same instant is never in the window and gives no output. So the output is explicit and does not
depend on the order in which rows of one instant arrive. A stream's time is among its columns, so the added and the
retracted row always differ and need no netting. The paper's circular array, in which a new row overwrites the oldest,
is a queue here, in arrays shared by all partitions: memory grows with the rows, not with partitions times n.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sash.operators.base import Edge, Operator, merge
from sash.operators.kernels.count_window import WORDS, advance, keep_last
from sash.operators.live_rows import own
from sash.plan.nodes import Rows
from sash.state.changes import ChangeBatch, concat
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints, Memory
from sash.state.ordering import order_rows
from sash.state.rows import RowStore
from sash.state.slots import Slots


class CountWindow(Operator):
    """The rows in the window by slot, and the partitions' queues of slots."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], window: Rows) -> None:
        (edge,) = inputs
        self._memory = memory
        self._window = window
        self._partitions = Interner(memory.scope("partitions"))
        self._slots = Slots(memory.scope("slots"))
        self._contents = RowStore(memory.scope("rows"), edge.dtypes)
        self._queues: Ints = memory.array("queues", np.int64, WORDS)
        self._rows: Ints = memory.array("queued", np.int64, 1024 * WORDS)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        if not len(batch):
            return batch
        codes = _codes(self._window, batch, self._partitions)
        slots = self._slots.take(len(batch))
        self._reserve()
        ts = own(batch.ts)
        valid, gone, times, unseen = advance(
            order_rows(ts, batch.columns), ts, codes, slots, self._window.count, self._queues, self._rows
        )
        self._contents.put(slots, batch.columns)
        output = ChangeBatch.explicit(batch.ts, batch.sign, batch.columns)
        if len(unseen):
            output = output.take(np.flatnonzero(valid))
        if len(gone):
            ends = ChangeBatch.explicit(times, np.full(len(gone), -1, np.int8), self._contents.take(gone))
            output = concat([ends, output]).take(merge(times, own(output.ts)))
        self.premature += len(gone)
        for dead in (gone, unseen):
            self._contents.free(dead)
            self._slots.give(dead)
        return output

    def _reserve(self) -> None:
        """Reserve space for every partition and every row."""
        partitions, rows = WORDS * max(self._partitions.capacity, 1), WORDS * self._slots.high
        if partitions > len(self._queues):
            self._queues = self._memory.grow("queues", np.int64, max(partitions, 2 * len(self._queues)))
        if rows > len(self._rows):
            self._rows = self._memory.grow("queued", np.int64, max(rows, 2 * len(self._rows)))

    @property
    def state_rows(self) -> int:
        return self._slots.live


def last_rows(window: Rows, batch: ChangeBatch) -> ChangeBatch:
    """The positions of the sorted rows that are still in the window after the last of them."""
    partitions = Interner(HeapMemory())
    codes = _codes(window, batch, partitions)
    order = order_rows(own(batch.ts), batch.columns)
    return batch.take(np.flatnonzero(keep_last(order, codes, window.count, max(partitions.capacity, 1))))


def _codes(window: Rows, batch: ChangeBatch, partitions: Interner) -> Ints:
    """The partition of every row."""
    if not window.partition:
        return np.zeros(len(batch), np.int64)
    low, high = hash_rows([batch.columns[column] for column in window.partition], len(batch))
    return partitions.intern(own(low), own(high))[0]
