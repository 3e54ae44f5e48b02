"""Hybrid: Expire is pulled up over the joins; time probing below it, negative tuples above (paper 1, 3.3).

A join need not process the expiration of a row, so the retractions start where an operator must: DISTINCT, aggregates, set
operators, top-k. Without a join Expire stays at the scan, and this is the negative-tuple strategy.
"""

from __future__ import annotations

from sash.physical.facts import facts_of
from sash.physical.nodes import PhysicalPlan, operations
from sash.physical.strategies.base import Strategy
from sash.physical.strategies.time_probing import ProbedTime
from sash.plan.nodes import Join, walk


def _without_joins(plan: PhysicalPlan) -> str | None:
    joins = any(facts_of(node).joins for stage in plan.stages for node in operations(stage.root))
    tables = any(isinstance(node, Join) for leg in plan.legs for node in walk(leg.node))
    return None if joins or tables else "no join to pull Expire over: it stays at the scan, as in negative-tuple"


HYBRID = Strategy(
    "hybrid",
    "time probing up to the joins' top, a retraction for every row that expires above it",
    ProbedTime,
    expire="above joins",
    paced=True,
    probing=True,
    note=_without_joins,
)
