"""Move negation above joins and DISTINCT where that costs less: fewer operators then process its retractions.

This is paper 5's update-pattern simplification (5.4.2; its Figure 6 is Query 5). Negation means the operators that may
retract rows at any time: EXCEPT, and semi and anti joins with a stream. As bags, (A - B) join C is
(A join C) - (B join C); the paper's Figure 6 has (A join C) - B, which miscounts a value's copies where C has several.
"""

from __future__ import annotations

from collections.abc import Iterator

from sash.optimizer.rewriting import columns, condition_columns, select, somewhere
from sash.plan.expression_safety import may_fail, respects_equality
from sash.plan.expressions import Column, remap
from sash.plan.keys import keys
from sash.plan.nodes import Distinct, Except, Join, Node, Project, mirrored
from sash.plan.patterns import is_nonretroactive, is_table
from sash.plan.types import holds_floats


def pull_up_negation(plan: Node) -> Iterator[Node]:
    """Propose plans with one negation above the join or the DISTINCT that is its parent.

    >>> from sash.testing.rewrites import show
    >>> show(pull_up_negation, "SELECT q.k FROM (SELECT k FROM s EXCEPT ALL SELECT k FROM r) q JOIN slow ON q.k = slow.k WINDOW 1 HOUR")
    Project k#0
      Join inner ON k#0 = k#1
        Except all
          Project k#1
            Stream s [RANGE 1 HOUR]
          Project k#1
            Stream r [RANGE 1 HOUR]
        Stream slow [RANGE 1 HOUR]
    =>
    Project k#0
      Except all
        Join inner ON k#0 = k#1
          Project k#1
            Stream s [RANGE 1 HOUR]
          Stream slow [RANGE 1 HOUR]
        Join inner ON k#0 = k#1
          Project k#1
            Stream r [RANGE 1 HOUR]
          Stream slow [RANGE 1 HOUR]
    """
    return somewhere(plan, _pulled)


def is_negating_join(node: Node) -> bool:
    """Whether the node is a semi or anti join whose matches may change."""
    return isinstance(node, Join) and node.kind in ("semi", "anti") and not is_looked_up(node.right)


def is_looked_up(node: Node) -> bool:
    """Whether rows are only looked up in the node, without state."""
    return is_table(node) or is_nonretroactive(node)


def _pulled(node: Node) -> Iterator[Node]:
    match node:
        case Distinct():
            yield from _above_distinct(node)
        case Join() if node.kind == "inner" and not is_looked_up(node.left) and not is_looked_up(node.right):
            yield from _above_join(node)
            border, size = len(node.left.schema), len(node.schema)
            for other in _above_join(mirrored(node)):
                yield select(other, [(position + size - border) % size for position in range(size)])


def _above_join(node: Join) -> Iterator[Node]:
    """Pull the negation up from the join's left input, across a projection of columns."""
    if node.condition is not None and may_fail(node.condition):
        return
    negation, positions = bare(node.left)
    width = len(negation.schema)
    border, others = len(node.left.schema), len(node.right.schema)
    at = dict(enumerate(positions)) | {border + position: width + position for position in range(others)}
    met = tuple((at[left], right) for left, right in node.keys)
    condition = None if node.condition is None else remap(node.condition, at)
    if isinstance(negation, Except):
        once = negation.all or bool(keys(node.right))
        if holds_floats(node.right.schema):  # EXCEPT would turn their -0.0 into 0.0
            return
        if not once or (condition is not None and not respects_equality(condition)):
            return
        left = Join(negation.left, node.right, "inner", met, condition)
        right = Join(negation.right, node.right, "inner", met, condition)
        above: Node = Except(left, right, negation.all)
    elif isinstance(negation, Join) and is_negating_join(negation):
        joined = Join(negation.left, node.right, "inner", met, condition)
        moved = {
            position: position if position < width else position + others
            for position in range(width + len(negation.right.schema))
        }
        tested = None if negation.condition is None else remap(negation.condition, moved)
        if tested is not None and may_fail(tested):
            return
        above = Join(joined, negation.right, negation.kind, negation.keys, tested)
    else:
        return
    yield select(above, [at[position] for position in range(len(node.schema))])


def bare(node: Node) -> tuple[Node, list[int]]:
    """The node under a projection that only selects columns, and the columns it selects."""
    if isinstance(node, Project):
        picked = [made.index for made in node.expressions if isinstance(made, Column)]
        if len(picked) == len(node.expressions):
            return node.child, picked
    return node, list(range(len(node.schema)))


def _above_distinct(node: Distinct) -> Iterator[Node]:
    """Pull the negation above DISTINCT. All copies of a row match or none does if all compared columns are selected."""
    negation, positions = bare(node.child)
    if not (isinstance(negation, Join) and is_negating_join(negation)):
        return
    if negation.condition is not None and not respects_equality(negation.condition):
        return
    read, _ = condition_columns(negation)
    if not read <= set(positions):
        return
    at = {column: position for position, column in reversed(list(enumerate(positions)))}
    width = len(negation.left.schema)
    met = tuple((at[left], right) for left, right in negation.keys)
    shifted = {width + position: len(positions) + position for position in range(len(negation.right.schema))}
    condition = None if negation.condition is None else remap(negation.condition, at | shifted)
    names = tuple(field.name for field in node.schema)
    below = select(negation.left, positions)
    if isinstance(below, Project):
        below = Project(below.child, names, below.expressions)
    elif tuple(field.name for field in below.schema) != names:
        below = Project(below, names, columns(below))
    yield Join(Distinct(below), negation.right, negation.kind, met, condition)
