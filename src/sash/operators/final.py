"""Final: rows are only added (EMIT ON WINDOW CLOSE).

Meaning: (row, ts, exp, +) gives (row, ts, FOREVER, +), and a retraction gives nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sash.operators.base import Edge, Operator
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory


class Final(Operator):
    """Stateless; rows of the output never end."""

    def __init__(self, memory: Memory, inputs: tuple[Edge]) -> None:
        pass

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        added = batch if (batch.sign > 0).all() else batch.take(np.flatnonzero(batch.sign > 0))
        return ChangeBatch.explicit(added.ts, added.sign, added.columns)
