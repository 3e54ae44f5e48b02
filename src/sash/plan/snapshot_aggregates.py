"""Aggregates that estimate their result: only snapshots of kept windows compute them."""

from __future__ import annotations

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import APPROXIMATE
from sash.plan.nodes import Aggregate, Node, walk


def refuse_snapshot_aggregates(plan: Node) -> None:
    """Raise UnsupportedSqlError if a standing query has an aggregate that only snapshots compute."""
    for node in walk(plan):
        for call in node.aggregates if isinstance(node, Aggregate) else ():
            if call.function in APPROXIMATE:
                raise UnsupportedSqlError(
                    f"{call.function.upper()} is available in snapshots of a kept window only: use SNAPSHOT SELECT "
                    "(engine.snapshot), or an exact aggregate"
                )
