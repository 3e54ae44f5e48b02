"""An inner join is symmetric: with the table on its right, it can run straight above the stream on its left."""

from __future__ import annotations

from sash.optimizer.rewriting import bottom_up, select
from sash.plan.nodes import Join, Node, mirrored
from sash.plan.patterns import is_table


def put_tables_right(plan: Node) -> Node:
    """Exchange the sides of every inner join that has a table on its left only."""
    return bottom_up(plan, _exchange)


def _exchange(node: Node) -> Node:
    if not isinstance(node, Join) or node.kind != "inner" or not is_table(node.left) or is_table(node.right):
        return node
    exchanged = mirrored(node)
    width, size = len(node.right.schema), len(node.schema)
    return select(exchanged, [(position + width) % size for position in range(size)])
