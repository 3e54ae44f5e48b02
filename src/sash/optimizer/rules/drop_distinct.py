"""DISTINCT of rows that a key already tells apart is nothing to do."""

from __future__ import annotations

from sash.optimizer.rewriting import bottom_up
from sash.plan.keys import keys
from sash.plan.nodes import Distinct, Node


def drop_distinct(plan: Node) -> Node:
    """Leave out every DISTINCT whose input has a key."""
    return bottom_up(plan, lambda node: node.child if isinstance(node, Distinct) and keys(node.child) else node)
