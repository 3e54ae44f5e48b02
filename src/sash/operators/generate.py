"""Rows of the elements of arrays: explode, posexplode, inline and LATERAL VIEW.

Meaning: a change gives one change per element of its array, with the same ts, exp and sign, so what is made of a row lives
as long as it does; with `outer`, a row without elements gives one change with NULLs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.netting import net
from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.changes import ChangeBatch
from sash.state.columns import gather
from sash.state.memory import Memory
from sash.state.nested import elements


class Generate(Operator):
    """Stateless. Elements of a retracted row may equal those of an added one, so it nets them."""

    def __init__(
        self, memory: Memory, inputs: tuple[Edge], columns: tuple[int, ...], array: Expression, outer: bool
    ) -> None:
        self._columns, self._array, self._outer = columns, array, outer

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        arrays = evaluate(self._array, batch.columns, len(batch))
        offsets, inner = elements(arrays)
        counts = np.diff(offsets)
        made = np.maximum(counts, 1) if self._outer else counts
        origin = np.repeat(np.arange(len(batch)), made)
        first = np.cumsum(made) - made
        position = np.arange(len(origin)) - first[origin]
        missing = counts[origin] == 0
        place = pa.array(np.where(missing, 0, offsets[origin] + position), mask=missing)
        columns = (
            *gather([batch.columns[column] for column in self._columns], origin),
            pa.array(position.astype(np.int32), mask=missing),
            inner.take(place),
        )
        return net(ChangeBatch(batch.ts[origin], batch.exp[origin], batch.sign[origin], columns))
