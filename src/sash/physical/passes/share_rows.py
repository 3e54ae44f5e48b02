"""Let a join read the rows of a DISTINCT below it where the DISTINCT keeps them, instead of a copy (paper 5, 5.4.2).

A value stays in one position from its arrival until the whole stage has processed its end, so the position is all that the
join keeps of it.
"""

from __future__ import annotations

from dataclasses import replace

from sash.physical.nodes import Distinct, Join, Operation, Physical
from sash.physical.passes.base import PlannerSettings, rebuild


def share_rows(root: Physical, settings: PlannerSettings) -> Physical:
    """Mark the inputs of joins that are a DISTINCT with retractions; both must run at one clock."""
    if not settings.strategy.retracting_joins:
        return root

    def change(_old: Operation, node: Operation) -> Physical:
        match node:
            case Join():
                left, right = (isinstance(child, Distinct) and child.retracting for child in node.inputs)
                return replace(node, shared=(left, right)) if left or right else node
            case _:
                return node

    return rebuild(root, change)
