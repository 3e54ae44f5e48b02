"""Interval joins: conditions that bound how far apart in time the rows of a pair are, and so how long a row must be kept.

A row whose partners have all come is of no use to a join: its results live on by themselves. Where the condition bounds
the times of both inputs' rows, a join keeps rows for less time than their windows, and rows of unbounded streams only for
as long as a partner can still come.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
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
    walk,
)
from sash.plan.patterns import Pattern, is_static, looked_up_side, pattern
from sash.plan.types import TIMESTAMP, TIMESTAMP_NTZ

MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
"""Comparisons of times -> those with the operands swapped."""

_WORTH = 2
"""Joins are run by their bounds if windows are at least so many times as long."""


@dataclass(frozen=True)
class TimeBounds:
    """For how many microseconds after its arrival a row of each input may still meet partners; None: without a bound."""

    left: int | None = None
    right: int | None = None

    def __bool__(self) -> bool:
        return self.left is not None or self.right is not None


def time_columns(node: Node) -> frozenset[int]:
    """The columns that have the time at which each row arrives."""
    return frozenset(column for column, delay in _delays(node).items() if delay == 0)


@once_per_node
def _delays(node: Node) -> dict[int, int]:
    """The columns that have a time not after that at which the row arrives, and by how much it may be earlier.

    A row of a join arrives with the later of its two, which is at most the life of the other after that.
    """
    match node:
        case Stream(window=window) if node.schema[node.time].dtype in (TIMESTAMP, TIMESTAMP_NTZ):
            plain = isinstance(window, Aligned | Unbounded) or (isinstance(window, Range) and window.slide is None)
            return {node.time: 0} if plain else {}
        case Filter() | AssignWindows():
            return _delays(node.child)
        case Lifetime():
            return _delays(node.child) if node.start is None else {}
        case Project():
            below = _delays(node.child)
            columns = {n: e.index for n, e in enumerate(node.expressions) if isinstance(e, Column)}
            return {n: below[index] for n, index in columns.items() if index in below}
        case Union():
            left, right = _delays(node.left), _delays(node.right)
            return {column: max(left[column], right[column]) for column in left.keys() & right.keys()}
        case Join():
            if looked_up_side(node) is node.right:
                return _delays(node.left)
            return _delays_of_pairs(node) if node.kind == "inner" else {}
        case _:
            return {}


def _delays_of_pairs(node: Join) -> dict[int, int]:
    bounds, border = time_bounds(node), len(node.left.schema)
    found: dict[int, int] = {}
    if bounds.left is not None:
        found |= {column: delay + bounds.left - 1 for column, delay in _delays(node.left).items()}
    if bounds.right is not None:
        found |= {column + border: delay + bounds.right - 1 for column, delay in _delays(node.right).items()}
    return found


@once_per_node
def time_bounds(node: Node) -> TimeBounds:
    """The bounds of a join of two inputs whose rows have times; there are none for other nodes."""
    if not isinstance(node, Join) or looked_up_side(node) is not None:
        return TimeBounds()
    left, right = _delays(node.left), _delays(node.right)
    if not left or not right:
        return TimeBounds()
    parts = [] if node.condition is None else conjuncts(node.condition)
    border = len(node.left.schema)
    lives_left: list[int] = []
    lives_right: list[int] = []
    for one, other in node.keys:
        if one in left and other in right:
            lives_left.append(right[other])
            lives_right.append(left[one])
    shifted = {column + border: delay for column, delay in right.items()}
    for part in parts:
        found = _difference(part, left, shifted)
        if found is not None:
            function, bound, (one, other) = found
            if function in ("gt", "ge", "eq"):
                lives_left.append(shifted[other] - bound - (function == "gt"))
            if function in ("lt", "le", "eq"):
                lives_right.append(left[one] + bound - (function == "lt"))
    return TimeBounds(_life(lives_left), _life(lives_right))


def bounds_time(left: Node, right: Node, predicate: Expression) -> bool:
    """Whether the predicate, over the columns of both nodes, bounds how far apart in time their rows are."""
    border = len(left.schema)
    moved = [column + border for column in _delays(right)]
    return _difference(predicate, _delays(left), moved) is not None


def _life(bounds: Sequence[int]) -> int | None:
    """How long a row is kept: a partner may come until the tightest bound, and at the row's own instant."""
    return max(1, min(bounds) + 1) if bounds else None


def _difference(
    part: Expression, left: Container[int], right: Container[int]
) -> tuple[str, int, tuple[int, int]] | None:
    """The comparison of (left time - right time) with a constant that the part is, and the two columns; None if it is
    something else."""
    if not isinstance(part, Call) or part.function not in MIRRORED:
        return None
    one, other = map(moved_column, part.arguments)
    if one is None or other is None:
        return None
    if one[0] in left and other[0] in right:
        return part.function, other[1] - one[1], (one[0], other[0])
    if one[0] in right and other[0] in left:
        return MIRRORED[part.function], one[1] - other[1], (other[0], one[0])
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
    if not isinstance(node, Join):
        return False
    sides = (side for side in node.children if side not in kept_whole(node))
    return any(pattern(side) == Pattern.MONO and not is_static(side) for side in sides)


def kept_whole(node: Join) -> list[Node]:
    """The inputs whose rows the join keeps until they expire: a row that may be in the answer without a partner stays."""
    bounds = time_bounds(node)
    left = bounds.left is None or node.kind not in ("inner", "right")
    right = bounds.right is None or node.kind in ("right", "full")
    return [side for side, whole in ((node.left, left), (node.right, right)) if whole]


@once_per_node
def runs_by_bounds(node: Node) -> bool:
    """Whether the join is run by itself, not with others: its bounds make state finite, or much smaller than the windows."""
    if not isinstance(node, Join) or node.kind != "inner":
        return False
    bounds = time_bounds(node)
    if bounds.left is None or bounds.right is None:
        return needs_bounds(node)
    windows = [below.window for below in walk(node) if isinstance(below, Stream)]
    lengths = [window.length for window in windows if isinstance(window, Range | Aligned)]
    return needs_bounds(node) or (
        len(lengths) == len(windows) and _WORTH * max(bounds.left, bounds.right) <= min(lengths)
    )
