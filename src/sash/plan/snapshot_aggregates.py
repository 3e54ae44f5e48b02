"""Which aggregates a standing query computes, and which a snapshot of a kept window."""

from __future__ import annotations

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import APPROXIMATE, ORDERED, SPREADS
from sash.plan.nodes import Aggregate, Node, walk

_SNAPSHOTS = (
    APPROXIMATE | ORDERED | SPREADS | {"count", "count_star", "sum", "avg", "min", "max", "median", "percentile"}
)
_DISTINCT = frozenset({"count", "sum", "avg", "min", "max"})


def refuse_snapshot_aggregates(plan: Node) -> None:
    """Raise UnsupportedSqlError if a standing query has an aggregate that only snapshots compute."""
    for node in walk(plan):
        for call in node.aggregates if isinstance(node, Aggregate) else ():
            if call.function in APPROXIMATE:
                raise UnsupportedSqlError(
                    f"{call.function.upper()} is available in snapshots of a kept window only: use SNAPSHOT SELECT "
                    "(engine.snapshot), or an exact aggregate"
                )


def refuse_standing_aggregates(plan: Node) -> None:
    """Raise UnsupportedSqlError if a snapshot has an aggregate that only standing queries compute."""
    for node in walk(plan):
        for call in node.aggregates if isinstance(node, Aggregate) else ():
            distinct = call.distinct and call.function not in _DISTINCT
            if distinct or call.function not in _SNAPSHOTS or call.detail is not None:
                name = f"{call.function.upper()}{'(DISTINCT ...)' if distinct else ''}"
                raise UnsupportedSqlError(
                    f"a snapshot cannot compute {name}: keep the answer of a standing query with it, and read that"
                )
