"""Properties of a logical plan that lowering needs: which part is a leg, and the lifetimes and times of a node's rows."""

from __future__ import annotations

from sash.physical.nodes import OutputExpiry
from sash.plan.compound import walk as walk_expression
from sash.plan.expressions import Column, SparkFunction, runs_in_sash
from sash.plan.nodes import (
    Aligned,
    Distinct,
    Expand,
    Filter,
    Join,
    Node,
    Project,
    Range,
    Relation,
    Rows,
    Stream,
    Window,
    computed,
    walk,
)
from sash.plan.patterns import is_table


def is_leg(node: Node) -> bool:
    """Whether the node runs right above a source: nothing but filters, projections and static lookups.

    A count window does not: its rows are counted in a stage.
    """
    match node:
        case Stream():
            return not isinstance(node.window, Rows)
        case Relation():
            return not node.changes
        case Filter() | Project() | Expand():
            return is_leg(node.child)
        case Join():
            return (
                node.kind in ("inner", "left", "semi", "anti")
                and is_leg(node.left)
                and not is_table(node.left)
                and is_table(node.right)
            )
        case _:
            return False


def only_columns(node: Node) -> bool:
    """Whether the leg does nothing but choose columns."""
    while isinstance(node, Project) and all(isinstance(expression, Column) for expression in node.expressions):
        node = node.child
    return isinstance(node, Stream)


def has_spark_functions(node: Node) -> bool:
    """Whether something in the leg is computed by a function that only Spark has."""
    return any(needs_spark(below) for below in walk(node))


def needs_spark(node: Node) -> bool:
    """Whether the node itself computes something by a function that only Spark has."""
    return any(isinstance(part, SparkFunction) for expression in computed(node) for part in walk_expression(expression))


def calls_user(node: Node) -> bool:
    """Whether the node itself calls a function that does not run in Spark's engine, such as one that the user registered."""
    return any(map(runs_in_sash, computed(node)))


def leg_source(node: Node) -> Stream | Relation:
    """The stream (or relation) that a leg reads."""
    while not isinstance(node, Stream | Relation):
        node = node.children[0]
    return node


def has_count_window(node: Node) -> bool:
    """Whether rows end because later ones push them out."""
    return any(isinstance(below, Stream) and isinstance(below.window, Rows) for below in walk(node))


def has_distinct(node: Node) -> bool:
    """Whether the lives of the node's rows depend on rows that are gone (see facts.is_repeatable)."""
    return any(isinstance(below, Distinct) for below in walk(node))


def expiry_of(window: Window) -> OutputExpiry:
    """How rows of a time window end: in order, but that a slide may have rows begin together and end apart."""
    if isinstance(window, Range):
        return "fifo" if window.slide is None or window.length % window.slide == 0 else "calendar"
    return "mono"


def horizon_of(node: Node) -> int:
    """The longest life of a row of a leg, in microseconds; 0 where it has no end."""
    source = leg_source(node)
    if isinstance(source, Stream) and isinstance(source.window, Range):
        return source.window.length + (source.window.slide or 0) + isinstance(source.window, Aligned)
    return 0
