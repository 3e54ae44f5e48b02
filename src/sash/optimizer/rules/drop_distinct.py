"""Remove a DISTINCT whose input has a key: its rows are distinct already."""

from __future__ import annotations

from sash.optimizer.rewriting import bottom_up
from sash.plan.keys import keys
from sash.plan.nodes import Distinct, Node


def drop_distinct(plan: Node) -> Node:
    """Remove every DISTINCT whose input has a key.

    >>> from sash.testing.rewrites import show
    >>> show(drop_distinct, "SELECT DISTINCT k, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k")
    Project k#0, count(1)#1 AS n
      Distinct
        Aggregate count(*) AS count(1) BY k#1
          Stream s [RANGE 1 HOUR]
    =>
    Project k#0, count(1)#1 AS n
      Aggregate count(*) AS count(1) BY k#1
        Stream s [RANGE 1 HOUR]
    """
    return bottom_up(plan, lambda node: node.child if isinstance(node, Distinct) and keys(node.child) else node)
