"""How rows meet a non-retroactive relation (paper 5, 4.1): at their own times, and told apart until they have met it."""

from __future__ import annotations

from dataclasses import replace

from sash.physical.nodes import Operation, Physical
from sash.physical.shapes import has_times
from sash.plan.expressions import Column, Expression, remap
from sash.plan.keys import keys
from sash.plan.nodes import Filter, Join, Node, Project, Stream, walk, with_children
from sash.plan.patterns import is_nonretroactive, is_table


def only_stream(node: Node) -> Stream | None:
    """The stream whose rows come out of the node one by one, as they came; None where rows are put together."""
    while not isinstance(node, Stream):
        looks_up = isinstance(node, Join) and (is_table(node.right) or is_nonretroactive(node.right))
        if not isinstance(node, Filter | Project) and not looks_up:
            return None
        node = node.children[0]
    return node


def told_apart(node: Node) -> Node | None:
    """The node with more columns after its own, which tell rows of a GROUP BY or DISTINCT apart; None where it needs none."""
    base = node
    while isinstance(base, Filter | Project):
        base = base.child
    return _widened(node) if keys(base) and not keys(node) else None


def has_mixed_times(node: Node) -> bool:
    """Whether rows of the node have times that cannot be compared as columns."""
    streams = [below for below in walk(node) if isinstance(below, Stream)]
    return has_times(node) and len({stream.schema[stream.time].dtype for stream in streams}) > 1


def _widened(node: Node) -> Node:
    """The node with the columns after its own that projections in it leave out."""
    match node:
        case Filter():
            return replace(node, child=_widened(node.child))
        case Project():
            child = _widened(node.child)
            names = tuple(field.name for field in child.schema)
            kept = tuple(Column(index, field.name, field.dtype) for index, field in enumerate(child.schema))
            return Project(child, (*node.names, *names), (*node.expressions, *kept))
        case _:
            return node


def shifted(node: Join, border: int) -> Expression | None:
    """The condition of the join where its left input has got more columns, up to the border."""
    width = len(node.left.schema)
    if node.condition is None:
        return None
    both = range(width + len(node.right.schema))
    return remap(node.condition, {index: index if index < width else index - width + border for index in both})


def with_stream(node: Node, stream: Stream) -> Node:
    """The node over another stream."""
    if isinstance(node, Stream):
        return stream
    return with_children(node, (with_stream(node.children[0], stream), *node.children[1:]))


def narrowed(joined: Physical, node: Join, border: int) -> Operation:
    """The columns of a join whose left input has got more, up to the border."""
    width = len(node.left.schema)
    expressions = tuple(
        Column(index if index < width else index - width + border, field.name, field.dtype)
        for index, field in enumerate(node.schema)
    )
    arguments = {"expressions": expressions}
    return Operation("Project", arguments, (joined,), node.schema, joined.expiry, joined.pattern, joined.horizon)


def exchanged(joined: Physical, node: Join) -> Operation:
    """The columns of a mirrored join in the order of the join as it was."""
    split = len(node.right.schema)
    expressions = tuple(
        Column((index + split) % len(node.schema), field.name, field.dtype) for index, field in enumerate(node.schema)
    )
    arguments = {"expressions": expressions}
    return Operation("Project", arguments, (joined,), node.schema, joined.expiry, joined.pattern, joined.horizon)
