"""Projection with duplicates: computes columns row by row; signs and times are unchanged (paper 1, 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from sash.operators.base import Edge, Operator
from sash.operators.filter import Filter
from sash.operators.netting import net
from sash.operators.scalar import evaluate_all
from sash.plan.expressions import Column, Expression
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory


class Project(Operator):
    """Stateless. If a column is dropped, a retracted row may become equal to an added one, so the output is netted.

    Given the selection below it, it does both, and gathers only the columns that it needs of the rows that pass.
    """

    def __init__(
        self, memory: Memory, inputs: tuple[Edge], expressions: tuple[Expression, ...], selection: Filter | None = None
    ) -> None:
        self._expressions = expressions
        self._selection = selection
        kept = {expression.index for expression in expressions if isinstance(expression, Column)}
        self._drops = len(kept) < len(inputs[0].dtypes)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        keep = None if self._selection is None else self._selection.positions(batch)
        if keep is None or len(keep) == len(batch):
            projected = batch.with_columns(evaluate_all(self._expressions, batch.columns, len(batch)))
        else:
            made = evaluate_all(self._expressions, batch.columns, len(keep), keep)
            projected = ChangeBatch(batch.ts[keep], batch.exp[keep], batch.sign[keep], tuple(made))
        return net(projected) if self._drops else projected
