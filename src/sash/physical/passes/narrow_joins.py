"""Let joins output only the columns that the projection above them reads: the others are neither kept nor gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sash.physical.nodes import Join, Operation, Physical, Project
from sash.physical.passes.base import PlannerSettings, readers, rebuild
from sash.plan.expressions import columns_of, remap


def narrow_joins(root: Physical, settings: PlannerSettings) -> Physical:
    """Narrow the joins that only a projection reads; those whose operators learn by rows alone keep all columns."""
    if settings.strategy.by_rows_alone:
        return root
    counted = readers(root)

    def change(old: Operation, node: Operation) -> Physical:
        match node:
            case Project(inputs=(Join() as join,)) if counted[id(old.inputs[0])] == 1:
                read = sorted(frozenset[int]().union(*map(columns_of, node.expressions)))
                positions = {column: position for position, column in enumerate(read)}
                expressions = tuple(remap(expression, positions) for expression in node.expressions)
                return replace(node, inputs=(_narrowed(join, read),), expressions=expressions)
            case _:
                return node

    return rebuild(root, change)


def _narrowed(join: Join, columns: Sequence[int]) -> Join:
    """The join with these columns of its output alone."""
    border = len(join.inputs[0].schema)
    return replace(
        join,
        left_columns=tuple(column for column in columns if column < border),
        right_columns=tuple(column - border for column in columns if column >= border),
        output=replace(join.output, schema=tuple(join.schema[column] for column in columns)),
    )
