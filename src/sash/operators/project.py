"""Projection with duplicates: new columns from the old, row by row; signs and times pass through (paper 1, 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from sash.operators.base import Edge, Operator
from sash.operators.netting import net
from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory


class Project(Operator):
    """Stateless; rows that become equal are netted, since dropping a column may make an old row equal to a new one."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], expressions: tuple[Expression, ...]) -> None:
        self._expressions = expressions

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        columns = [evaluate(expression, batch.columns, len(batch)) for expression in self._expressions]
        return net(batch.with_columns(columns))
