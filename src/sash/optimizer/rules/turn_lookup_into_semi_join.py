"""Under DISTINCT, replace a join with a table by a semi-join if none of the table's columns is read."""

from __future__ import annotations

from dataclasses import replace

from sash.optimizer.rewriting import bottom_up, filtered
from sash.optimizer.rules.push_distinct_below_join import JoinUnderDistinct, join_under
from sash.plan.nodes import Distinct, Node, Project
from sash.plan.patterns import is_table


def turn_lookup_into_semi_join(plan: Node) -> Node:
    """Replace every inner join with a table, under DISTINCT, that adds no column by a semi-join, which repeats no rows.

    >>> from sash.testing.rewrites import show
    >>> show(turn_lookup_into_semi_join, "SELECT DISTINCT s.v FROM s [RANGE 1 HOUR] JOIN t ON s.k = t.k")
    Distinct
      Project v#2
        Join inner ON k#1 = k#0
          Stream s [RANGE 1 HOUR]
          Relation t
    =>
    Distinct
      Project v#2
        Join semi ON k#1 = k#0
          Stream s [RANGE 1 HOUR]
          Relation t
    """
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
