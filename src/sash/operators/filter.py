"""Selection: the rows for which the predicate is true; a negative row is tested like its positive one (paper 1, 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from sash.operators.base import Edge, Operator
from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints, Memory


class Filter(Operator):
    """Stateless; the output edge is of the input's kind."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], predicate: Expression) -> None:
        self._predicate = predicate

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        keep = self.positions(batch)
        return batch if len(keep) == len(batch) else batch.take(keep)

    def positions(self, batch: ChangeBatch) -> Ints:
        """Where the rows are that pass, in order."""
        passed = evaluate(self._predicate, batch.columns, len(batch))
        positions: Ints = pc.indices_nonzero(passed).to_numpy().view(np.int64)
        return positions
