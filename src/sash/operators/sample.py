"""Sample: applies a stream's SLIDE to rows after their join with a non-retroactive relation.

Meaning: (row, ts, exp) gives (row, ceil(ts/s)*s, ceil(exp/s)*s), or nothing if that is empty. A row that then starts at
the clock or later is kept until its start. Otherwise the window applies SLIDE on arrival; but the join with a
non-retroactive relation needs the row's own time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sash.operators.base import Edge, Operator
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import Spool
from sash.state.memory import Memory


class Sample(Operator):
    """Keeps the rows that have not started; input and output are stamped, in the same order."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], slide: int) -> None:
        (edge,) = inputs
        self._slide = slide
        self._waiting = Spool(memory.scope("waiting"), edge.dtypes)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        start, end = (-(-times // self._slide) * self._slide for times in (batch.ts, batch.exp))
        placed = ChangeBatch.stamped(start, end, batch.columns).take(np.flatnonzero(end > start))
        rows = concat([self._waiting.load(), placed])
        ready = int(np.searchsorted(rows.ts, clock, side="left"))
        if self._waiting.rows or ready < len(rows):
            self._waiting.save(rows.slice(ready, len(rows)))
        return rows.slice(0, ready)

    @property
    def state_rows(self) -> int:
        return self._waiting.rows
