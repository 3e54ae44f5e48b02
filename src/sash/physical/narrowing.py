"""Joins that give only what the projection above them takes: a column that nobody reads is neither kept nor gathered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sash.physical.nodes import Operation
from sash.plan.expressions import columns_of, remap


def narrow_joins(nodes: Sequence[Operation]) -> dict[int, Operation]:
    """By the ids of a stage's operations: joins that only a projection reads, and these projections, as they are built."""
    readers = Counter(id(child) for node in nodes for child in node.inputs)
    made: dict[int, Operation] = {}
    for node in nodes:
        if node.operator != "Project":
            continue
        (below,) = node.inputs
        if isinstance(below, Operation) and below.operator == "Join" and readers[id(below)] == 1:
            expressions = node.arguments["expressions"]
            taken = sorted(frozenset[int]().union(*map(columns_of, expressions)))
            made[id(below)] = join = _giving(below, taken)
            places = {column: place for place, column in enumerate(taken)}
            arguments = {"expressions": tuple(remap(expression, places) for expression in expressions)}
            made[id(node)] = replace(node, inputs=(join,), arguments=arguments)
    return made


def _giving(join: Operation, columns: Sequence[int]) -> Operation:
    """The join with these columns of its output alone."""
    border = len(join.inputs[0].schema)
    sides = {
        "left_columns": tuple(column for column in columns if column < border),
        "right_columns": tuple(column - border for column in columns if column >= border),
    }
    return replace(join, arguments={**join.arguments, **sides}, schema=tuple(join.schema[column] for column in columns))
