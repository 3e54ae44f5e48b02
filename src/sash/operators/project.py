"""Projection with duplicates: new columns from the old, row by row; signs and times pass through (paper 1, 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from sash.operators.base import Edge, Operator
from sash.operators.netting import net
from sash.operators.scalar import evaluate
from sash.plan.expressions import Column, Expression
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory


class Project(Operator):
    """Stateless; where a column is dropped an old row may become equal to a new one, so such rows are netted."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], expressions: tuple[Expression, ...]) -> None:
        self._expressions = expressions
        kept = {expression.index for expression in expressions if isinstance(expression, Column)}
        self._drops = len(kept) < len(inputs[0].dtypes)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        columns = [evaluate(expression, batch.columns, len(batch)) for expression in self._expressions]
        projected = batch.with_columns(columns)
        return net(projected) if self._drops else projected
