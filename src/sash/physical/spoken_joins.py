"""Joins that say the ends of their results to operators of their own stage that must process every end.

Told when its rows end, a set operation keeps counts by value, and a group-by whose aggregates take values off again keeps
sums: neither keeps the rows. So the join takes its results back by probing once more (`explicit.py`) instead of having them
kept above it by when they end. MIN, MEDIAN and their like are not for this: they find a row that ends by its place, and
would have to look for its value. What another stage reads is not, either: it would be sent twice. Nor is a join that purges
its rows lazily, which cannot say when they end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sash.physical.explicit import explicit, speaks
from sash.physical.nodes import Operation, Physical, walk

_TAKEN_OFF = frozenset(
    {"count", "count_star", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"},
)


def with_spoken_joins(root: Physical) -> Physical:
    """The operators of a stage, where some joins say what ends."""
    readers = Counter(id(child) for node in walk(root) for child in node.inputs)
    made: dict[int, Physical] = {}

    def free(node: Physical) -> bool:
        """Whether it is a join, or computed from one, that may say what ends: it has one reader, and purges at once."""
        if not speaks(node) or readers[id(node)] > 1:
            return False
        assert isinstance(node, Operation)
        return free(node.inputs[0]) if node.operator == "Project" else "purge" not in node.arguments

    for node in walk(root):
        made[id(node)] = node
        if not isinstance(node, Operation):
            continue
        hears = _hears(node)
        inputs = []
        for child in node.inputs:
            new = made[id(child)]
            inputs.append(explicit(new, speaking=True) if hears and free(child) else new)
        if any(new is not old for new, old in zip(inputs, node.inputs, strict=True)):
            made[id(node)] = replace(node, inputs=tuple(inputs))
    return made[id(root)]


def _hears(node: Operation) -> bool:
    """Whether the operator is better off with every end said."""
    if node.operator == "Aggregate":
        return all(call.function in _TAKEN_OFF for call in node.arguments["aggregates"])
    return node.operator == "SetOperation"
