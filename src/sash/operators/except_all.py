"""EXCEPT ALL of a stamped left input whose output rows may carry expiration times (paper 5, 2.1 and 5.3.2).

Meaning: of a value with v1 live rows on the left and v2 on the right, max(v1 - v2, 0) are in the output: the left rows that
expire first, so that the end of a left row causes no retraction. NULLs are equal. The output is strict. A row sent while
the method is calendars has a left row's exp and ends silently at that time; a retraction, which repeats that exp, is sent
only if the right side removes it. A row sent while the method is negative tuples ends by a retraction, and only the number
of such rows per value is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from sash.operators.aggregates.base import canonical
from sash.operators.base import Edge, Learnt, Operator
from sash.operators.expiration_choice import ExpirationChoice, ExpirationPlan
from sash.operators.kernels import except_all as loop
from sash.operators.live_rows import LiveCodes, LiveRows, RowEvents, own, rows_at
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore
from sash.time import FOREVER

REACH: Final = 64
"""The largest number of rows of its value that a left row may pass to reach its position by expiration time."""


class ExceptAll(Operator):
    """Keeps each value once, with its counts per side, and the left rows sent by calendar in order of expiration."""

    def __init__(self, memory: Memory, inputs: tuple[Edge, Edge], ends: ExpirationPlan) -> None:
        left, right = inputs
        assert left.stamped
        self._values = Interner(memory.scope("values"))
        self._rows = RowStore(memory.scope("rows"), left.dtypes)
        self._counts = Arrays(memory, {"counts": np.int64})
        self._left = LiveRows(memory.scope("left"), left)
        self._tags = Arrays(memory.scope("left"), {"tags": np.int64})
        self._nodes = Arrays(memory.scope("left"), {"nodes": np.int64})
        self._right = LiveCodes(memory.scope("right"), right)
        self._expiration = ExpirationChoice(memory.scope("ending"), ends)
        self._ordered = left.expiry == "fifo"
        self._compared = 0

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        left = self._apply_left(inputs[0], clock)
        right = self._right.apply(inputs[1], self._codes(inputs[1]), clock)
        self._counts.reserve(loop.STRIDE * self._values.capacity)
        ts, exp, sign, codes, dead, silent, premature, compared = loop.advance(
            self._ordered, REACH, left.ts, left.sign, left.items, self._tags["tags"], self._nodes["nodes"],
            right.ts, right.sign, right.items, self._counts["counts"],
        )  # fmt: skip
        output = ChangeBatch(ts, exp, sign, tuple(self._rows.take(codes)))
        self._left.release(left.items[left.sign < 0])
        self._rows.free(dead)
        self._values.forget(dead)
        self.premature += premature
        self._compared += compared
        self._expiration.observe(output, silent, premature, clock)
        return output

    def _apply_left(self, batch: ChangeBatch, clock: int) -> RowEvents:
        codes = self._codes(batch)
        events, _, slots = self._left.apply(batch, clock)
        self._tags.reserve(self._left.capacity)
        exp = self._expiration.stamps(batch.ts, batch.exp)
        if (exp < FOREVER).any():
            self._nodes.reserve(loop.WORDS * self._left.capacity)
        loop.fill(slots, codes, own(exp), self._tags["tags"], self._nodes["nodes"])
        return events

    def _codes(self, batch: ChangeBatch) -> Ints:
        """The codes of the rows' values, which exist as long as either side has the value."""
        codes, fresh = self._values.intern(*hash_rows(batch.columns, len(batch)))
        self._rows.put(codes[fresh], [canonical(column) for column in rows_at(batch, fresh)])
        return codes

    @property
    def rows_examined(self) -> int:
        """The number of comparisons made to insert rows in order of expiration."""
        return self._compared

    @property
    def current_choice(self) -> tuple[str, str]:
        return self._expiration.current_choice

    @property
    def learnt(self) -> Learnt:
        return self._expiration.learnt

    def recall(self, learnt: Learnt) -> None:
        self._expiration.recall(learnt)

    @property
    def state_rows(self) -> int:
        return self._values.live + self._left.live + self._right.live
