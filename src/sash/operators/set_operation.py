"""The set operations over windows, and DISTINCT over explicit rows (paper 1, Algorithm 4.3 and 4.5; paper 5, 3.1).

Meaning: with v1 and v2 live rows of a value on the left and on the right, the value is in the output
`distinct`: min(v1, 1) times; `except`: once if v1 > 0 and v2 = 0; `except_all`: max(v1 - v2, 0) times;
`intersect`: once if both are > 0; `intersect_all`: min(v1, v2) times; `semi`: v1 times if v2 > 0;
`anti`: v1 times if v2 = 0 (W-MINUS with duplicates). NULLs are equal. The counts before and after all changes of an
instant are compared, so the order in which rows of a value expire does not matter. The value of a `-0.0` is 0.0, except
where whole left rows are passed on (`semi`, `anti`). The output is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.errors import SashError
from sash.operators.aggregates.base import canonical
from sash.operators.base import Edge, Operator
from sash.operators.kernels import set_operation as loop
from sash.operators.kernels.events import taken_back
from sash.operators.live_rows import LiveCodes, RowEvents, rows_at
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Memory
from sash.state.rows import RowStore

_MODES = {
    "distinct": loop.DISTINCT,
    "except": loop.EXCEPT,
    "except_all": loop.EXCEPT_ALL,
    "intersect": loop.INTERSECT,
    "intersect_all": loop.INTERSECT_ALL,
    "semi": loop.SEMI,
    "anti": loop.ANTI,
}


def _unchanged(column: pa.Array) -> pa.Array:
    return column


class SetOperation(Operator):
    """Keeps each value once, with its counts per side; stamped rows are kept as codes."""

    def __init__(self, memory: Memory, inputs: tuple[Edge, ...], mode: str) -> None:
        if mode not in _MODES or len(inputs) != (1 if mode == "distinct" else 2):
            raise SashError(f"unknown set operation {mode!r} of {len(inputs)} inputs: use one of {', '.join(_MODES)}")
        self._mode = _MODES[mode]
        self._values = Interner(memory.scope("values"))
        self._rows = RowStore(memory.scope("rows"), inputs[0].dtypes)
        self._stored = _unchanged if mode in ("semi", "anti") else canonical
        self._counts = Arrays(memory, {"counts": np.int64})
        self._sides = [LiveCodes(memory.scope(f"side{index}"), edge) for index, edge in enumerate(inputs)]

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        left, *others = [self._events(side, batch, clock) for side, batch in zip(self._sides, inputs, strict=True)]
        none = RowEvents(np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.int64))
        right = others[0] if others else none
        self._counts.reserve(loop.STRIDE * self._values.capacity)
        ts, sign, codes, dead = loop.advance(
            self._mode, left.ts, left.sign, left.items, right.ts, right.sign, right.items, self._counts["counts"]
        )
        if others:
            self.premature += taken_back(ts, sign, left.ts, left.sign)
        output = ChangeBatch.explicit(ts, sign, self._rows.take(codes))
        self._rows.free(dead)
        self._values.forget(dead)
        return output

    def _events(self, side: LiveCodes, batch: ChangeBatch, clock: int) -> RowEvents:
        codes, fresh = self._values.intern(*hash_rows(batch.columns, len(batch)))
        self._rows.put(codes[fresh], [self._stored(column) for column in rows_at(batch, fresh)])
        return side.apply(batch, codes, clock)

    @property
    def state_rows(self) -> int:
        return self._values.live + sum(side.live for side in self._sides)
