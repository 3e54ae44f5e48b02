"""Move negation below a join where that costs less: fewer rows are then joined (paper 5, 5.4.3).

This is the inverse of `pull_up_negation`, for joins with many results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from sash.optimizer.rewriting import condition_columns, select, somewhere, unnamed
from sash.optimizer.rules.pull_up_negation import bare, is_looked_up, is_negating_join
from sash.plan.expression_safety import may_fail, respects_equality
from sash.plan.expressions import columns_of, remap
from sash.plan.keys import keys
from sash.plan.nodes import Except, Join, Node
from sash.plan.types import holds_floats


def push_down_negation(plan: Node) -> Iterator[Node]:
    """Propose plans with one negation on the input whose columns it reads of the inner join below it.

    >>> from sash.testing.rewrites import show
    >>> show(push_down_negation, "SELECT q.k FROM (SELECT s.k FROM s JOIN fast ON s.k = fast.k) q LEFT ANTI JOIN r ON q.k = r.k WINDOW 1 HOUR")
    Join anti ON k#0 = k#1
      Project k#1
        Join inner ON k#1 = k#1
          Stream s [RANGE 1 HOUR]
          Stream fast [RANGE 1 HOUR]
      Stream r [RANGE 1 HOUR]
    =>
    Project k#1
      Join inner ON k#1 = k#1
        Join anti ON k#1 = k#1
          Stream s [RANGE 1 HOUR]
          Stream r [RANGE 1 HOUR]
        Stream fast [RANGE 1 HOUR]
    """
    return somewhere(plan, _pushed)


def _pushed(node: Node) -> Iterator[Node]:
    if isinstance(node, Except):
        yield from _difference_below(node)
    elif isinstance(node, Join) and is_negating_join(node):
        yield from _match_below(node)


def _match_below(node: Join) -> Iterator[Node]:
    """Push a semi or anti join below an inner join of which it reads one side only."""
    join, positions = bare(node.left)
    if not _is_plain(join) or (node.condition is not None and may_fail(node.condition)):
        return
    border = len(join.left.schema)
    read = {positions[column] for column in condition_columns(node)[0]}
    if read and max(read) < border:
        side, start = join.left, 0
    elif read and min(read) >= border:
        side, start = join.right, border
    else:
        return
    at = {column: position - start for column, position in enumerate(positions)}
    width = len(node.left.schema)
    at |= {width + column: len(side.schema) + column for column in range(len(node.right.schema))}
    condition = None if node.condition is None else remap(node.condition, at)
    reduced = Join(side, node.right, node.kind, tuple((at[left], right) for left, right in node.keys), condition)
    below = replace(join, left=reduced) if start == 0 else replace(join, right=reduced)
    yield select(below, positions)


def _difference_below(node: Except) -> Iterator[Node]:
    """Turn the difference of two joins with the same input, on the same columns, into a join of the difference.

    A projection in between may drop columns that are equal to a selected one.
    """
    (left, positions), (right, others) = bare(node.left), bare(node.right)
    if not (_is_plain(left) and _is_plain(right)) or positions != others or unnamed(left.right) != unnamed(right.right):
        return
    if left.keys != right.keys or not _same_condition(left, right):
        return
    if [field.dtype for field in left.left.schema] != [field.dtype for field in right.left.schema]:
        return
    border = len(left.left.schema)
    known = set(positions) | {one for one, other in left.keys if other + border in positions}
    known |= {other + border for one, other in left.keys if one in positions}
    once = node.all or bool(keys(left.right))
    if holds_floats(left.right.schema):  # only EXCEPT above the join turns their -0.0 into 0.0
        return
    if not once or known != set(range(len(left.schema))):
        return
    difference = Except(left.left, right.left, node.all)
    yield select(Join(difference, left.right, "inner", left.keys, left.condition), positions)


def _same_condition(left: Join, right: Join) -> bool:
    if left.condition is None or right.condition is None:
        return left.condition is right.condition
    same = columns_of(left.condition) == columns_of(right.condition) and respects_equality(left.condition)
    return same and unnamed(replace(left, left=right.left, right=right.right)) == unnamed(right)


def _is_plain(node: Node) -> TypeGuard[Join]:
    return (
        isinstance(node, Join)
        and node.kind == "inner"
        and not is_looked_up(node.left)
        and not is_looked_up(node.right)
        and (node.condition is None or not may_fail(node.condition))
    )
