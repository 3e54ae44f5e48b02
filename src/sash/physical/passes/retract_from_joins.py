"""Let joins retract their results for operators of their own stage that must process every expiration.

With retractions, a set operation keeps counts by value, and a group-by whose aggregates can subtract keeps sums: neither
keeps rows. So the join retracts its results by probing once more (`retractions.py`) instead of having them kept above it by
expiration time. MIN, MEDIAN and the like are excluded: they find an expiring row by its position, and would have to search
for its value. So is what another stage reads: it would be sent twice. So is a join with lazy expiration, which does not
notice when its rows expire.
"""

from __future__ import annotations

from dataclasses import replace

from sash.physical.nodes import Aggregate, IntervalJoin, Join, Operation, Physical, Project, SetOperation
from sash.physical.passes.base import PlannerSettings, readers, rebuild
from sash.physical.retractions import with_retractions

_SUBTRACTABLE = frozenset({"count", "count_star", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp"})


def retract_from_joins(root: Physical, settings: PlannerSettings) -> Physical:
    """Make the joins below set operations and subtractable aggregates retract their results."""
    if not settings.strategy.retracting_joins:
        return root
    counted = readers(root)

    def free(node: Physical) -> bool:
        """Whether it is a join, or computed from one, that may retract: it has one reader and expires its rows at once."""
        match node:
            case Join():
                return counted[id(node)] == 1 and node.purge is None and not isinstance(node, IntervalJoin)
            case Project():
                return counted[id(node)] == 1 and free(node.inputs[0])
            case _:
                return False

    def change(old: Operation, node: Operation) -> Physical:
        if not prefers_retractions(node) or not any(map(free, old.inputs)):
            return node
        inputs = (
            with_retractions(new, by_joins=True) if free(child) else new
            for child, new in zip(old.inputs, node.inputs, strict=True)
        )
        return replace(node, inputs=tuple(inputs))

    return rebuild(root, change)


def prefers_retractions(node: Operation) -> bool:
    """Whether the operator keeps fewer rows if these end by retractions."""
    match node:
        case Aggregate():
            return all(call.function in _SUBTRACTABLE for call in node.aggregates)
        case SetOperation():
            return True
        case _:
            return False
