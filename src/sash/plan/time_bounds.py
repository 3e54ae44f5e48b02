"""Interval joins: conditions that bound how far apart in time the rows of a pair are, and so how long a row must be kept.

A row whose partners have all come is of no use to a join: its results live on by themselves. Where the condition bounds
the times of both inputs' rows, a join keeps rows for less time than their windows, and rows of unbounded streams only for
as long as a partner can still come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sash.plan.expressions import Call, Column, Expression, Literal, conjuncts
from sash.plan.nodes import (
    Aligned,
    AssignWindows,
    Filter,
    Join,
    Lifetime,
    Node,
    Project,
    Range,
    Stream,
    Unbounded,
    Union,
    once_per_node,
)
from sash.plan.patterns import Pattern, is_static, looked_up_side, pattern
from sash.plan.types import TIMESTAMP, TIMESTAMP_NTZ

MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
"""Comparisons of times -> those with the operands swapped."""


@dataclass(frozen=True)
class TimeBounds:
    """For how many microseconds after its arrival a row of each input may still meet partners; None: without a bound."""

    left: int | None = None
    right: int | None = None

    def __bool__(self) -> bool:
        return self.left is not None or self.right is not None


@once_per_node
def time_columns(node: Node) -> frozenset[int]:
    """The columns that have the time at which each row arrives."""
    match node:
        case Stream(window=window) if node.schema[node.time].dtype in (TIMESTAMP, TIMESTAMP_NTZ):
            plain = isinstance(window, Aligned | Unbounded) or (isinstance(window, Range) and window.slide is None)
            return frozenset({node.time}) if plain else frozenset()
        case Filter() | AssignWindows():
            return time_columns(node.child)
        case Lifetime():
            return time_columns(node.child) if node.start is None else frozenset()
        case Project():
            below = time_columns(node.child)
            return frozenset(n for n, e in enumerate(node.expressions) if isinstance(e, Column) and e.index in below)
        case Union():
            return time_columns(node.left) & time_columns(node.right)
        case Join():
            return time_columns(node.left) if looked_up_side(node) is node.right else frozenset()
        case _:
            return frozenset()


@once_per_node
def time_bounds(node: Node) -> TimeBounds:
    """The bounds of a join of two inputs whose rows have times; there are none for other nodes."""
    if not isinstance(node, Join) or looked_up_side(node) is not None:
        return TimeBounds()
    left, right = time_columns(node.left), time_columns(node.right)
    if not left or not right:
        return TimeBounds()
    parts = [] if node.condition is None else conjuncts(node.condition)
    border = len(node.left.schema)
    least: list[int] = []
    most: list[int] = []
    if any(one in left and other in right for one, other in node.keys):
        least, most = [0], [0]
    for part in parts:
        found = _difference(part, left, frozenset(column + border for column in right))
        if found is not None:
            function, bound = found
            if function in ("gt", "ge", "eq"):
                least.append(bound + (function == "gt"))
            if function in ("lt", "le", "eq"):
                most.append(bound - (function == "lt"))
    return TimeBounds(_life(least, -1), _life(most, 1))


def bounds_time(left: Node, right: Node, predicate: Expression) -> bool:
    """Whether the predicate, over the columns of both nodes, bounds how far apart in time their rows are."""
    border = len(left.schema)
    moved = frozenset(column + border for column in time_columns(right))
    return _difference(predicate, time_columns(left), moved) is not None


def _life(bounds: Sequence[int], sign: int) -> int | None:
    """How long a row is kept: a partner may come until the tightest bound, and at the row's own instant."""
    return max(1, min(sign * bound for bound in bounds) + 1) if bounds else None


def _difference(part: Expression, left: frozenset[int], right: frozenset[int]) -> tuple[str, int] | None:
    """The comparison of (left time - right time) with a constant that the part is; None if it is something else."""
    if not isinstance(part, Call) or part.function not in MIRRORED:
        return None
    one, other = map(moved_column, part.arguments)
    if one is None or other is None:
        return None
    if one[0] in left and other[0] in right:
        return part.function, other[1] - one[1]
    if one[0] in right and other[0] in left:
        return MIRRORED[part.function], one[1] - other[1]
    return None


def moved_column(expression: Expression) -> tuple[int, int] | None:
    """The column that a time is, and the microseconds that are added to it; None if it is something else."""
    added = 0
    while isinstance(expression, Call) and expression.function == "timestamp_add_micros":
        expression, micros = expression.arguments
        if not isinstance(micros, Literal) or not isinstance(micros.value, int):
            return None
        added += micros.value
    return (expression.index, added) if isinstance(expression, Column) else None


@once_per_node
def needs_bounds(node: Node) -> bool:
    """Whether the join keeps rows of unbounded streams for a bounded time: it must be run as it is."""
    if not isinstance(node, Join) or node.kind != "inner":
        return False
    bounds = time_bounds(node)
    sides = ((node.left, bounds.left), (node.right, bounds.right))
    return any(life is not None and pattern(side) == Pattern.MONO and not is_static(side) for side, life in sides)
