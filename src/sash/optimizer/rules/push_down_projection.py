"""Drop columns that are not read above as early as possible, so that no operator processes or keeps them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from sash.optimizer.rewriting import condition_columns, select
from sash.plan import nodes
from sash.plan.expressions import ORDERED, Column, Expression, Literal, columns_of, remap
from sash.plan.patterns import is_nonretroactive

Places = dict[int, int]
"""Position of a column in a node -> its position in the rewritten node."""


def push_down_projection(plan: nodes.Node) -> nodes.Node:
    """Give every join, aggregate and union only the columns that are read there or above.

    DISTINCT, the set operators, top-k and aggregates that break ties read all columns of their input. A GROUP BY of
    which only the keys are read becomes a DISTINCT.

    >>> from sash.testing.rewrites import show
    >>> show(push_down_projection, "SELECT s.v FROM s [RANGE 1 HOUR] JOIN r [RANGE 1 HOUR] ON s.k = r.k")
    Project v#2
      Join inner ON k#1 = k#1
        Stream s [RANGE 1 HOUR]
        Stream r [RANGE 1 HOUR]
    =>
    Project v#1
      Join inner ON k#0 = k#0
        Project k#1, v#2
          Stream s [RANGE 1 HOUR]
        Project k#1
          Stream r [RANGE 1 HOUR]
    """
    return prune(plan, _all(plan))[0]


def _all(node: nodes.Node) -> frozenset[int]:
    return frozenset(range(len(node.schema)))


def prune(node: nodes.Node, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    """The node with at least the needed columns, in the same order, and where each of them is."""
    match node:
        case nodes.Stream() | nodes.Relation():
            return node, _positions(_all(node))
        case nodes.Filter():
            child, at = prune(node.child, needed | columns_of(node.predicate))
            return nodes.Filter(child, remap(node.predicate, at)), at
        case nodes.Project():
            return _prune_project(node, needed)
        case nodes.Expand():
            return _prune_expand(node, needed)
        case nodes.Generate():
            return _prune_generate(node, needed)
        case nodes.AssignWindows():
            own = len(node.child.schema)
            child, at = prune(node.child, frozenset(c for c in needed if c < own) | {node.time})
            added = {own + n: len(child.schema) + n for n in range(2)}
            return replace(node, child=child, time=at[node.time]), at | added
        case nodes.Final():
            child, at = _exactly(node.child, _all(node))
            return nodes.Final(child), at
        case nodes.Sessions():
            own = len(node.child.schema)
            read = {node.time, *node.keys} | (set() if node.gaps is None else {node.gaps})
            child, at = prune(node.child, frozenset(c for c in needed if c < own) | read)
            keys = tuple(at[key] for key in node.keys)
            gaps = None if node.gaps is None else at[node.gaps]
            return replace(node, child=child, keys=keys, time=at[node.time], gaps=gaps), at | {own: len(child.schema)}
        case nodes.Lifetime():
            times = [e for e in (node.start, node.end) if e is not None]
            child, at = prune(node.child, needed.union(*map(columns_of, times)))
            start, end = (None if e is None else remap(e, at) for e in (node.start, node.end))
            return nodes.Lifetime(child, start, end), at
        case nodes.Join():
            return _prune_join(node, needed)
        case nodes.Aggregate():
            return _prune_aggregate(node, needed)
        case nodes.Over():
            return _prune_over(node, needed)
        case nodes.Distinct() | nodes.TopK():
            child, at = _exactly(node.child, _all(node))
            return replace(node, child=child), at
        case nodes.Except() | nodes.Intersect():
            left, at = _exactly(node.left, _all(node))
            right, _ = _exactly(node.right, _all(node))
            return replace(node, left=left, right=right), at
        case nodes.Alike():
            left, _ = _exactly(node.left, _all(node.left))
            return replace(node, left=left), _positions(_all(node))
        case nodes.Union():
            kept = needed or _narrowest(node)
            left, at = _exactly(node.left, kept)
            right, _ = _exactly(node.right, kept)
            return nodes.Union(left, right), at


def _exactly(node: nodes.Node, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    """The node with the needed columns only; with one column if none is needed, because rows need one."""
    pruned, at = prune(node, needed)
    kept = [at[column] for column in sorted(needed)] or [*_narrowest(pruned)]
    return select(pruned, kept), _positions(needed)


def _positions(kept: Iterable[int]) -> Places:
    return {column: position for position, column in enumerate(sorted(kept))}


def _narrowest(node: nodes.Node) -> frozenset[int]:
    """The column with the smallest values."""

    def width(column: int) -> int:
        dtype = node.schema[column].dtype
        return dtype.bit_width if pa.types.is_primitive(dtype) else 1024

    return frozenset({min(range(len(node.schema)), key=width)})


def _prune_project(node: nodes.Project, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    kept = sorted(needed) or [
        min(range(len(node.names)), key=lambda position: _computing_cost(node.expressions[position]))
    ]
    read: frozenset[int] = frozenset().union(*(columns_of(node.expressions[position]) for position in kept))
    child, at = prune(node.child, read)
    expressions = tuple(remap(node.expressions[position], at) for position in kept)
    return nodes.Project(child, tuple(node.names[position] for position in kept), expressions), _positions(kept)


def _prune_generate(node: nodes.Generate, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    """Without the columns of the input that are not needed, above all the array itself."""
    own = len(node.columns)
    kept = sorted(position for position in needed if position < own)
    child, at = prune(node.child, frozenset(node.columns[position] for position in kept) | columns_of(node.array))
    columns = tuple(at[node.columns[position]] for position in kept)
    made = replace(node, child=child, columns=columns, array=remap(node.array, at))
    return made, _positions([*kept, own, own + 1])


def _prune_expand(node: nodes.Expand, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    kept = sorted(needed) or [
        min(range(len(node.names)), key=lambda position: max(_computing_cost(made[position]) for made in node.lists))
    ]
    lists = [[made[position] for position in kept] for made in node.lists]
    read: frozenset[int] = frozenset().union(*(columns_of(expression) for made in lists for expression in made))
    child, at = prune(node.child, read)
    moved = tuple(tuple(remap(expression, at) for expression in made) for made in lists)
    return nodes.Expand(child, tuple(node.names[position] for position in kept), moved), _positions(kept)


def _computing_cost(expression: Expression) -> int:
    return {Literal: 0, Column: 1}.get(type(expression), 2)


def _prune_join(node: nodes.Join, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    border = len(node.left.schema)
    read_left, read_right = condition_columns(node)
    left, left_at = _side(node.left, read_left | {column for column in needed if column < border})
    right, right_at = _side(node.right, read_right | {column - border for column in needed if column >= border})
    new_border = len(left.schema)
    at = left_at | {column + border: position + new_border for column, position in right_at.items()}
    join = nodes.Join(
        left,
        right,
        node.kind,
        tuple((left_at[one], right_at[other]) for one, other in node.keys),
        None if node.condition is None else remap(node.condition, at),
    )
    return join, left_at if node.kind in ("semi", "anti") else at


def _side(node: nodes.Node, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    """An input of a join; a non-retroactive relation keeps all columns, since its updates are whole rows."""
    return (node, _positions(_all(node))) if is_nonretroactive(node) else _exactly(node, needed)


def _prune_over(node: nodes.Over, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    """Without the calls that nobody needs; without all of them the rows are those of the input."""
    width = len(node.child.schema)
    kept = [position for position in range(len(node.calls)) if position + width in needed]
    read = frozenset(column for column in needed if column < width)
    if not kept:
        return prune(node.child, read)
    calls = [node.calls[position] for position in kept]
    ties = node.ties if any(call.depends_on_ties for call in calls) else ()
    child, at = _exactly(node.child, read.union(node.partition, ties, *(call.columns for call in calls)))
    over = nodes.Over(
        child,
        tuple(at[column] for column in node.partition),
        tuple(at[column] for column in ties),
        tuple(node.names[position] for position in kept),
        tuple(call.moved(at) for call in calls),
    )
    return over, {**at, **{width + position: len(child.schema) + n for n, position in enumerate(kept)}}


def _prune_aggregate(node: nodes.Aggregate, needed: frozenset[int]) -> tuple[nodes.Node, Places]:
    width = len(node.keys)
    kept = [position for position in range(len(node.aggregates)) if position + width in needed]
    if not kept and width:
        child, at = prune(node.child, frozenset(node.keys))
        return nodes.Distinct(select(child, [at[key] for key in node.keys])), _positions(range(width))
    kept = kept or list(range(len(node.aggregates)))[:1]
    calls = [node.aggregates[position] for position in kept]
    read = {*node.keys, *(column.index for call in calls for column in call.arguments)}
    by_order = any(call.function in ORDERED for call in calls)
    child, at = _exactly(node.child, _all(node.child) if by_order else frozenset(read))
    aggregate = nodes.Aggregate(
        child,
        tuple(at[key] for key in node.keys),
        tuple(node.names[position] for position in kept),
        tuple(replace(call, arguments=tuple(replace(c, index=at[c.index]) for c in call.arguments)) for call in calls),
    )
    return aggregate, _positions([*range(width), *(width + position for position in kept)])
