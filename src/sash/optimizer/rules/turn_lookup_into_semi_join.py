"""Under DISTINCT, a join with a table of which nothing is read only asks whether there is a match."""

from __future__ import annotations

from dataclasses import replace

from sash.optimizer.rewriting import bottom_up, filtered
from sash.optimizer.rules.push_distinct_below_join import JoinUnderDistinct, join_under
from sash.plan.nodes import Distinct, Node, Project
from sash.plan.patterns import is_table


def turn_lookup_into_semi_join(plan: Node) -> Node:
    """Make a semi-join of every inner join with a table, under DISTINCT, that adds no column and may repeat rows."""
    return bottom_up(plan, lambda node: _turned(node) if isinstance(node, Distinct) else node)


def _turned(node: Distinct) -> Node:
    found = join_under(node)
    if found is None or not is_table(found.join.right) or is_table(found.join.left):
        return node
    if any(column >= len(found.join.left.schema) for column in found.read):
        return node
    return _with_semi_join(found)


def _with_semi_join(found: JoinUnderDistinct) -> Node:
    below = filtered(replace(found.join, kind="semi"), found.parts)
    return Distinct(Project(below, found.names, found.expressions))
