"""Lowering of joins with non-retroactive relations (paper 5, 4.1).

Rows join the relation at their own times, and keep columns that identify them until they have joined it.
"""

from __future__ import annotations

from dataclasses import replace

from sash.physical.nodes import Operation, Physical
from sash.physical.nodes import Project as PhysicalProject
from sash.plan.expressions import Column, Expression, remap
from sash.plan.keys import keys
from sash.plan.nodes import Filter, Join, Node, Project, Stream, walk, with_children
from sash.plan.patterns import is_nonretroactive, is_table
from sash.plan.row_times import has_times


def only_stream(node: Node) -> Stream | None:
    """The stream whose rows the node outputs one by one; None where rows are combined."""
    while not isinstance(node, Stream):
        looks_up = isinstance(node, Join) and (is_table(node.right) or is_nonretroactive(node.right))
        if not isinstance(node, Filter | Project) and not looks_up:
            return None
        node = node.children[0]
    return node


def with_row_identity(node: Node) -> Node | None:
    """The node with added columns that identify the rows of a GROUP BY or DISTINCT; None where it needs none."""
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


def shifted_condition(node: Join, border: int) -> Expression | None:
    """The condition of the join once its left input has added columns, up to the border."""
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


def without_added_columns(joined: Physical, node: Join, border: int) -> Operation:
    """The columns of a join whose left input has added columns, up to the border."""
    width = len(node.left.schema)
    expressions = tuple(
        Column(index if index < width else index - width + border, field.name, field.dtype)
        for index, field in enumerate(node.schema)
    )
    return _projected(joined, node, expressions)


def without_mirroring(joined: Physical, node: Join) -> Operation:
    """The columns of a mirrored join in the order of the original join."""
    split = len(node.right.schema)
    expressions = tuple(
        Column((index + split) % len(node.schema), field.name, field.dtype) for index, field in enumerate(node.schema)
    )
    return _projected(joined, node, expressions)


def _projected(joined: Physical, node: Join, expressions: tuple[Expression, ...]) -> Operation:
    output = replace(joined.output, schema=node.schema)
    return PhysicalProject(expressions=expressions, inputs=(joined,), output=output)
