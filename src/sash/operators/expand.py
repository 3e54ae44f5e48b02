"""Several output rows per input row: GROUPING SETS, UNPIVOT and VALUES.

Meaning: every change gives one change per list of expressions, with the same ts, exp and sign, so the copies of a row live
as long as it does. Rows stay in order of time, the copies of a row next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.netting import net
from sash.operators.scalar import evaluate_all
from sash.plan.expressions import Expression
from sash.state.changes import ChangeBatch
from sash.state.columns import gather
from sash.state.memory import Memory


class Expand(Operator):
    """Stateless. Copies of a retracted row may equal copies of an added one, where these lack columns, so it nets them."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], lists: tuple[tuple[Expression, ...], ...]) -> None:
        self._lists = lists
        self._distinct = list(dict.fromkeys(made for columns in lists for made in columns))
        self._positions = {made: position for position, made in enumerate(self._distinct)}

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        rows, copies = len(batch), len(self._lists)
        if not rows:
            return batch.with_columns([pa.array([], made.dtype) for made in self._lists[0]])
        made = evaluate_all(self._distinct, batch.columns, rows)
        origin = np.repeat(np.arange(rows), copies)
        among = np.arange(rows * copies).reshape(copies, rows).T.ravel()
        columns: list[pa.Array] = []
        for alternatives in zip(*self._lists, strict=True):
            parts = [made[self._positions[one]] for one in alternatives]
            if all(one == alternatives[0] for one in alternatives):
                columns += gather((parts[0],), origin)
            else:
                columns += gather((pa.concat_arrays(parts),), among)
        return net(ChangeBatch(batch.ts[origin], batch.exp[origin], batch.sign[origin], tuple(columns)))
