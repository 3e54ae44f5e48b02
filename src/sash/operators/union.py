"""Window UNION ALL: both inputs in time order (paper 1, 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from sash.operators.base import Edge, Operator
from sash.operators.netting import net
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import Memory


class Union(Operator):
    """Stateless; both inputs are of one kind, stamped or explicit, and so is the output."""

    def __init__(self, memory: Memory, inputs: tuple[Edge, ...]) -> None:
        pass

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        return net(concat(inputs).sorted())
