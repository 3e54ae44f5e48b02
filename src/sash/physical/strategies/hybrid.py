"""Hybrid: Expire is pulled up over the joins; time probing below it, negative tuples above (paper 1, 3.3).

A join need not process the end of a row, so the `-` rows start where an operator must: DISTINCT, aggregates, set
operators, top-k. Without a join Expire stays at the scan, and this is the negative tuple strategy.
"""

from __future__ import annotations

from sash.physical.nodes import Operation, PhysicalPlan, walk
from sash.physical.strategies.base import Strategy
from sash.physical.strategies.time_probing import Probe
from sash.plan.nodes import Join
from sash.plan.nodes import walk as walk_logical


def _without_joins(plan: PhysicalPlan) -> str | None:
    operations = [node for stage in plan.stages for node in walk(stage.root) if isinstance(node, Operation)]
    joins = any(node.operator in ("Join", "Lookup", "MultiJoin", "NrrJoin", "SemiJoin") for node in operations)
    tables = any(isinstance(node, Join) for leg in plan.legs for node in walk_logical(leg.node))
    return (
        None if joins or tables else "there is no join to pull Expire over: it stays at the scan, as in negative-tuple"
    )


HYBRID = Strategy(
    "hybrid",
    "time probing up to the joins' top, a `-` row for every row that ends above it",
    Probe,
    expire="above joins",
    note=_without_joins,
)
