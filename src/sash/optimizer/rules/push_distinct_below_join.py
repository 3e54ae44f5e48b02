"""DISTINCT over a join is taken on the join's inputs first, where there are fewer rows (paper 5, 5.4).

The set of joined rows depends only on the sets of rows that are joined. Where nothing of a table is read above the
join, DISTINCT needs to know only whether there is a match.
"""

from __future__ import annotations

from dataclasses import replace

from sash.optimizer.rewriting import bottom_up, columns, condition_columns, filtered, select
from sash.plan.expressions import Expression, columns_of, conjuncts, remap
from sash.plan.failures import respects_equality
from sash.plan.keys import keys
from sash.plan.nodes import Distinct, Filter, Join, Node, Project, Stream, mirrored, walk
from sash.plan.patterns import is_table


def push_distinct_below_join(plan: Node) -> Node:
    """Put a DISTINCT of the columns that are read on each input of a join of streams on equal keys."""
    return bottom_up(plan, lambda node: _push(node) if isinstance(node, Distinct) else node)


def _push(node: Distinct) -> Node:
    """The DISTINCT over a join, perhaps with a filter and a projection in between, rewritten."""
    top = node.child
    below = top.child if isinstance(top, Project) else top
    parts = conjuncts(below.predicate) if isinstance(below, Filter) else []
    join = below.child if isinstance(below, Filter) else below
    if not isinstance(join, Join) or join.kind != "inner":
        return node
    expressions = top.expressions if isinstance(top, Project) else columns(top)
    names = tuple(field.name for field in top.schema)
    if is_table(join.left) and not is_table(join.right):
        swapped = mirrored(join)
        border, size = len(join.left.schema), len(join.schema)
        at = {column: (column + size - border) % size for column in range(size)}
        join, parts = swapped, [remap(part, at) for part in parts]
        expressions = tuple(remap(expression, at) for expression in expressions)
    read: frozenset[int] = frozenset().union(*map(columns_of, (*expressions, *parts)))
    if is_table(join.right) and not is_table(join.left):
        if any(column >= len(join.left.schema) for column in read):
            return node
        return Distinct(Project(filtered(replace(join, kind="semi"), parts), names, expressions))
    return _reduced(node, join, parts, names, expressions, read)


def _reduced(
    node: Distinct,
    join: Join,
    parts: list[Expression],
    names: tuple[str, ...],
    expressions: tuple[Expression, ...],
    read: frozenset[int],
) -> Node:
    tested = parts if join.condition is None else [*parts, join.condition]
    if not join.keys or not all(map(respects_equality, (*expressions, *tested))):
        return node
    if not (_has_stream(join.left) and _has_stream(join.right)):
        return node
    border = len(join.left.schema)
    met_left, met_right = condition_columns(join)
    read_left = sorted(met_left | {column for column in read if column < border})
    read_right = sorted(met_right | {column - border for column in read if column >= border})
    left, right = select(join.left, read_left), select(join.right, read_right)
    if keys(left) and keys(right):
        return node
    at = {column: place for place, column in enumerate(read_left)}
    at |= {column + border: place + len(read_left) for place, column in enumerate(read_right)}
    reduced = Join(
        left if keys(left) else Distinct(left),
        right if keys(right) else Distinct(right),
        "inner",
        tuple((at[one], at[other + border] - len(read_left)) for one, other in join.keys),
        None if join.condition is None else remap(join.condition, at),
    )
    top = filtered(reduced, [remap(part, at) for part in parts])
    return Distinct(Project(top, names, tuple(remap(expression, at) for expression in expressions)))


def _has_stream(node: Node) -> bool:
    return any(isinstance(below, Stream) for below in walk(node))
