"""Selection: the rows for which the predicate is true; a negative row is tested like its positive one (paper 1, 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from sash.operators.base import Edge, Operator
from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory


class Filter(Operator):
    """Stateless; the output edge is of the input's kind."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], predicate: Expression) -> None:
        self._predicate = predicate

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        if not len(batch):
            return batch
        passed = evaluate(self._predicate, batch.columns, len(batch))
        keep = np.flatnonzero(pc.fill_null(passed, False).to_numpy(zero_copy_only=False))
        return batch if len(keep) == len(batch) else batch.take(keep)
