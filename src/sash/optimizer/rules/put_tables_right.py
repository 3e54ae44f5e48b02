"""Put the table of an inner join on the right, so that the join can run directly above the stream on its left."""

from __future__ import annotations

from sash.optimizer.rewriting import bottom_up, select
from sash.plan.nodes import Join, Node, mirrored
from sash.plan.patterns import is_table


def put_tables_right(plan: Node) -> Node:
    """Swap the sides of every inner join that has a table on its left only.

    >>> from sash.testing.rewrites import show
    >>> show(put_tables_right, "SELECT s.v, t.name FROM t JOIN s [RANGE 1 HOUR] ON t.k = s.k")
    Project v#4, name#1
      Join inner ON k#0 = k#1
        Relation t
        Stream s [RANGE 1 HOUR]
    =>
    Project v#2, name#4
      Join inner ON k#1 = k#0
        Stream s [RANGE 1 HOUR]
        Relation t
    """
    return bottom_up(plan, _exchange)


def _exchange(node: Node) -> Node:
    if not isinstance(node, Join) or node.kind != "inner" or not is_table(node.left) or is_table(node.right):
        return node
    exchanged = mirrored(node)
    width, size = len(node.right.schema), len(node.schema)
    return select(exchanged, [(position + width) % size for position in range(size)])
