"""Rows that carry their time as a column, for operators that go by time above rows that end by retractions.

Where rows expire by themselves, the time of a row is the `ts` of its one change. Elsewhere, as with a count window, a row
ends by a retraction, whose `ts` is that of the end, and two equal rows may have different times: so there the time becomes
a column.
"""

from __future__ import annotations

from dataclasses import replace

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import Call, Column, remap
from sash.plan.nodes import AssignWindows, Expand, Filter, Generate, Join, Lifetime, Node, Project, Stream, Union
from sash.plan.patterns import is_nonretroactive, is_table

_TIME = "time"


def has_times(node: Node) -> bool:
    """Whether every row of the node has the time of the stream rows it was made of."""
    match node:
        case Stream():
            return True
        case Filter() | Project() | Expand() | Generate() | AssignWindows():
            return has_times(node.child)
        case Lifetime():
            return node.start is None and has_times(node.child)
        case Union():
            return has_times(node.left) and has_times(node.right)
        case Join():
            sides = [has_times(side) or is_table(side) or is_nonretroactive(side) for side in (node.left, node.right)]
            looked_up = is_table(node.right) or is_nonretroactive(node.right)
            lookup = looked_up and node.kind in ("left", "semi", "anti")
            return all(sides) and (node.kind == "inner" or lookup)
        case _:
            return False


def with_time(node: Node) -> Node:
    """The node's columns, then the time of each row: of a joined one, that of the row that came last.

    For nodes made of streams, filters, projections, unions, inner joins and lookups.
    """
    match node:
        case Stream():
            return _extended(node, _columns(node), _columns(node)[node.time])
        case Filter():
            return Filter(with_time(node.child), node.predicate)
        case Project():
            child = with_time(node.child)
            return replace(
                node,
                child=child,
                names=(*node.names, _TIME),
                expressions=(*node.expressions, _columns(child)[-1]),
            )
        case Expand():
            child = with_time(node.child)
            lists = tuple((*made, _columns(child)[-1]) for made in node.lists)
            return Expand(child, (*node.names, _TIME), lists)
        case Generate():
            child, own = with_time(node.child), len(node.columns)
            generated = replace(node, child=child, columns=(*node.columns, len(child.schema) - 1))
            columns = _columns(generated)
            return _extended(generated, [*columns[:own], *columns[own + 1 :]], columns[own])
        case AssignWindows():
            child, own = with_time(node.child), len(node.child.schema)
            made = replace(node, child=child)
            columns = _columns(made)
            return _extended(made, [*columns[:own], *columns[own + 1 :]], columns[own])
        case Lifetime():
            return replace(node, child=with_time(node.child))
        case Union():
            return Union(with_time(node.left), with_time(node.right))
        case Join():
            return _joined(node)
        case _:
            raise AssertionError(f"{type(node).__name__} gives rows that have no time")


def _joined(node: Join) -> Node:
    left = node.left if _is_looked_up(node.left) else with_time(node.left)
    right = node.right if _is_looked_up(node.right) else with_time(node.right)
    border, wider = len(node.left.schema), len(left.schema)
    at = {n: n if n < border else n + wider - border for n in range(border + len(node.right.schema))}
    condition = None if node.condition is None else remap(node.condition, at)
    join = Join(left, right, node.kind, node.keys, condition)
    if node.kind in ("semi", "anti"):
        return join
    columns = _columns(join)
    times = [columns[n] for n in (border, len(columns) - 1) if n not in at.values()]
    kinds = {time.dtype for time in times}
    if len(kinds) > 1:
        raise UnsupportedSqlError(
            "what goes by time above a join with a [ROWS n] window needs streams whose time columns have one type, not "
            + " and ".join(sorted(map(str, kinds)))
        )
    latest = times[0] if len(times) == 1 else Call("greatest", tuple(times), times[0].dtype)
    return _extended(join, [columns[position] for position in at.values()], latest)


def _is_looked_up(node: Node) -> bool:
    return is_table(node) or is_nonretroactive(node)


def _extended(node: Node, columns: list[Column], time: Column | Call) -> Project:
    return Project(node, (*(column.name for column in columns), _TIME), (*columns, time))


def _columns(node: Node) -> list[Column]:
    return [Column(index, field.name, field.dtype) for index, field in enumerate(node.schema)]
