"""Move a join with a relation that changes below the negation whose retractions it would receive (paper 5, 5.4).

A negation selects rows by value, or one by one, so joining them with the relation before or after gives the same answer
at every instant: updates of the relation are retroactive. A join with a non-retroactive relation does not move, because
its result depends on when the row arrives.
"""

from __future__ import annotations

from dataclasses import replace

from sash.optimizer.rewriting import bottom_up, columns, condition_columns, select
from sash.plan.expression_safety import may_fail, respects_equality
from sash.plan.expressions import Column, Expression, remap
from sash.plan.keys import keys
from sash.plan.nodes import Except, Intersect, Join, Node, Project, mirrored
from sash.plan.relations import changing_relation, is_strict_for
from sash.plan.types import holds_floats


def push_relation_join_below_negation(plan: Node) -> Node:
    """Move joins with changing relations below EXCEPT, INTERSECT, semi and anti joins, where their input is strict.

    >>> from sash.testing.rewrites import show
    >>> show(push_relation_join_below_negation, "SELECT q.k, p.name FROM (SELECT k FROM s EXCEPT SELECT k FROM r) q JOIN prices p ON q.k = p.k WINDOW 1 HOUR")
    Project k#0, name#2
      Join inner ON k#0 = k#0
        Except
          Project k#1
            Stream s [RANGE 1 HOUR]
          Project k#1
            Stream r [RANGE 1 HOUR]
        Relation prices (changes by k)
    =>
    Project k#0, name#2
      Except
        Join inner ON k#0 = k#0
          Project k#1
            Stream s [RANGE 1 HOUR]
          Relation prices (changes by k)
        Join inner ON k#0 = k#0
          Project k#1
            Stream r [RANGE 1 HOUR]
          Relation prices (changes by k)
    """
    return bottom_up(plan, lambda node: _push(node) if isinstance(node, Join) else node)


def _push(node: Join) -> Node:
    if node.kind == "inner" and changing_relation(node.left) is not None and changing_relation(node.right) is None:
        swapped = mirrored(node)
        pushed = _push(swapped)
        size, width = len(node.schema), len(node.right.schema)
        return node if pushed is swapped else select(pushed, [(position + width) % size for position in range(size)])
    relation = changing_relation(node.right)
    if relation is None or not relation.retroactive or node.kind not in ("inner", "left", "semi", "anti"):
        return node
    if not is_strict_for(node.left, relation) or (node.condition is not None and may_fail(node.condition)):
        return node
    return _below(node) or node


def _below(node: Join) -> Node | None:
    """The join below what its left input is; None where it cannot go."""
    left = node.left
    match left:
        case Project():
            return _below_project(node, left)
        case Join() if left.kind in ("semi", "anti"):
            joined = replace(node, left=left.left)
            border, both = len(left.left.schema), len(left.left.schema) + len(left.right.schema)
            added = len(joined.schema) - border
            positions = {column: column if column < border else column + added for column in range(both)}
            return replace(left, left=joined, condition=_moved(left.condition, positions))
        case Except() | Intersect():
            distinct = node.kind in ("semi", "anti") or bool(keys(node.right))
            if node.kind not in ("semi", "anti") and holds_floats(node.right.schema):
                return None  # the set operator would turn their -0.0 into 0.0
            if (not left.all and not distinct) or (
                node.condition is not None and not respects_equality(node.condition)
            ):
                return None
            return replace(left, left=replace(node, left=left.left), right=replace(node, left=left.right))
        case _:
            return None


def _below_project(node: Join, left: Project) -> Node | None:
    positions = {
        position: expression.index
        for position, expression in enumerate(left.expressions)
        if isinstance(expression, Column)
    }
    if not condition_columns(node)[0] <= positions.keys():
        return None
    width, old = len(left.child.schema), len(left.schema)
    shifted = {old + column: width + column for column in range(len(node.right.schema))}
    moved = Join(
        left.child,
        node.right,
        node.kind,
        tuple((positions[one], other) for one, other in node.keys),
        _moved(node.condition, positions | shifted),
    )
    below = _below(moved)
    if below is None:
        return None
    new = columns(below)[width:]
    return Project(below, left.names + tuple(column.name for column in new), left.expressions + new)


def _moved(condition: Expression | None, positions: dict[int, int]) -> Expression | None:
    return None if condition is None else remap(condition, positions)
