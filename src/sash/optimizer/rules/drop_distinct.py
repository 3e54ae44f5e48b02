"""Remove a DISTINCT whose input has a key: its rows are distinct already.

DISTINCT also turns -0.0 into 0.0, so it stays where a -0.0 may come from a source.
"""

from __future__ import annotations

from sash.optimizer.rewriting import bottom_up
from sash.plan.expressions import Column
from sash.plan.keys import keys
from sash.plan.nodes import Aggregate, Distinct, Except, Filter, Intersect, Join, Node, Project, TopK
from sash.plan.types import holds_floats


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
    return bottom_up(plan, lambda node: node.child if isinstance(node, Distinct) and _is_distinct(node.child) else node)


def _is_distinct(node: Node) -> bool:
    return bool(keys(node)) and _has_one_zero(node)


def _has_one_zero(node: Node) -> bool:
    """Whether no column of the node holds -0.0."""
    match node:
        case Aggregate() | Distinct() | Except() | Intersect():
            return True
        case Filter() | TopK():
            return _has_one_zero(node.child)
        case Project() if all(isinstance(expression, Column) for expression in node.expressions):
            return not holds_floats(node.schema) or _has_one_zero(node.child)
        case Join():
            return not holds_floats(node.schema) or (_has_one_zero(node.left) and _has_one_zero(node.right))
        case _:
            return not holds_floats(node.schema)
