"""Update patterns: in which order, and how foreseeably, the rows of a plan's output go (paper 5).

MONO: rows never go. WKS (weakest): every row lives equally long, so rows go in the order they came. WK (weak): a row's
end is known when it comes, but not in order of coming. REPLACE, written WK(replace): a row goes when its group's next
row takes its place. STR (strict): a row may go at any time, so its end must be said.
"""

from __future__ import annotations

import enum
import functools

from sash.errors import UnboundedStateError
from sash.plan.nodes import (
    Aggregate,
    Distinct,
    Except,
    Filter,
    Intersect,
    Join,
    Node,
    Project,
    Range,
    Relation,
    Rows,
    Stream,
    TopK,
    Unbounded,
    Union,
    Window,
    walk,
)


@functools.total_ordering
class Pattern(enum.Enum):
    """The update patterns, from the simplest to the most general; `label` is how EXPLAIN writes one."""

    MONO = (0, "MONO")
    WKS = (1, "WKS")
    WK = (2, "WK")
    REPLACE = (3, "WK(replace)")
    STR = (4, "STR")

    @property
    def label(self) -> str:
        return self.value[1]

    def __lt__(self, other: Pattern) -> bool:
        return self.value[0] < other.value[0]


def pattern(node: Node) -> Pattern:
    """The update pattern of a node's output; what is made of data that never changes never changes.

    EXCEPT is strict because an arrival on its right takes rows out of the answer; TopK because a row that comes first
    pushes out the last, whose end nobody foresaw. Semi and anti joins are strict because a row's stay depends on matches
    that come and go on the other side; outer joins because a row padded with NULLs goes as soon as a match comes, and
    comes back when the last one goes. A count window is strict because a row goes when the n-th after it comes. A join
    with a relation that changes is strict because an update may end any result; one with a non-retroactive relation, or
    with one that never changes, is as its other input: what a row got there it keeps. A stream without a window is MONO.
    """
    if is_static(node):
        return Pattern.MONO
    match node:
        case Stream():
            return _of_window(node.window)
        case Relation():
            return Pattern.STR
        case Filter() | Project():
            return pattern(node.child)
        case Join():
            return _of_join(node)
        case Aggregate():
            return Pattern.REPLACE
        case Distinct():
            below = pattern(node.child)
            if below == Pattern.MONO:
                return Pattern.MONO
            return Pattern.WK if below <= Pattern.WK else Pattern.STR
        case Union():
            return _of_union(node)
        case Intersect():
            return Pattern.WK if max(pattern(node.left), pattern(node.right)) <= Pattern.WKS else Pattern.STR
        case Except() | TopK():
            return Pattern.STR


def _of_window(window: Window) -> Pattern:
    match window:
        case Range():
            return Pattern.WKS
        case Rows():
            return Pattern.STR
        case Unbounded():
            return Pattern.MONO


def _of_join(node: Join) -> Pattern:
    if _only_looks_up(node):
        return pattern(node.left)
    if _only_looks_up_leftwards(node):
        return pattern(node.right)
    if node.kind != "inner":
        return Pattern.STR
    left, right = pattern(node.left), pattern(node.right)
    if max(left, right) >= Pattern.REPLACE:
        return Pattern.STR
    return Pattern.MONO if left == right == Pattern.MONO else Pattern.WK


def _of_union(node: Union) -> Pattern:
    """A merge of windows of different lengths is not first in, first out."""
    left, right = pattern(node.left), pattern(node.right)
    if left == right == Pattern.MONO:
        return Pattern.MONO
    if left == right == Pattern.WKS:
        windows = {below.window for below in walk(node) if isinstance(below, Stream)}
        return Pattern.WKS if len(windows) == 1 else Pattern.WK
    return max(left, right, Pattern.WK)


def is_static(node: Node) -> bool:
    """Whether the node is made of relations that never change."""
    match node:
        case Stream():
            return False
        case Relation():
            return not node.changes
        case _:
            return all(is_static(child) for child in node.children)


def is_table(node: Node) -> bool:
    """Whether the node is plain data that rows can be looked up in: a relation that never changes, perhaps thinned."""
    while isinstance(node, Filter | Project):
        node = node.child
    return isinstance(node, Relation) and not node.changes


def is_nonretroactive(node: Node) -> bool:
    """Whether the node is a non-retroactive relation, whose updates concern only rows that come later."""
    while isinstance(node, Filter | Project):
        node = node.child
    return isinstance(node, Relation) and node.changes and not node.retroactive


def _only_looks_up(node: Join) -> bool:
    """Whether the join takes its left rows one by one to a right side that never changes its mind about them."""
    return _stays(node.right) and node.kind in ("inner", "left", "semi", "anti")


def _only_looks_up_leftwards(node: Join) -> bool:
    """The same seen from the right side."""
    return _stays(node.left) and node.kind in ("inner", "right")


def _stays(node: Node) -> bool:
    """Whether the node never changes its mind about a row that has met it."""
    return is_static(node) or is_nonretroactive(node)


def stateful(node: Node) -> bool:
    """Whether the node itself has to remember rows."""
    match node:
        case Relation() | Filter() | Project() | Union():
            return False
        case Stream():
            return isinstance(node.window, Rows)
        case Join():
            looked_up = is_static(node.right) and _only_looks_up(node)
            return not looked_up and not (is_static(node.left) and _only_looks_up_leftwards(node))
        case Aggregate() | Distinct() | Except() | Intersect() | TopK():
            return True


_BOUNDED_AGGREGATES = frozenset(
    {"sum", "count", "count_star", "avg", "min", "max", "var_pop", "var_samp", "stddev_pop", "stddev_samp"}
)
"""What is kept in a fixed number of values per group when rows only come."""


def refuse_unbounded(node: Node) -> None:
    """Raise UnboundedStateError if some operator would have to remember every row of an unbounded stream."""
    for below in walk(node):
        operator = _hungry(below)
        if operator is None:
            continue
        stream = next((name for child in below.children for name in _endless(child)), None)
        if stream is not None:
            raise UnboundedStateError(
                f"{operator} would have to remember every row of stream {stream} for ever: "
                f"give it a window, as in {stream} [RANGE 1 HOUR]"
            )


def _hungry(node: Node) -> str | None:
    """What to call the operator, if it keeps whole rows for as long as they live."""
    match node:
        case Join():
            if _only_looks_up(node) or _only_looks_up_leftwards(node):
                return None
            return "a join" if node.kind == "inner" else f"{node.kind.upper()} JOIN"
        case Except():
            return "EXCEPT"
        case Intersect():
            return "INTERSECT"
        case TopK():
            return "ORDER BY ... LIMIT"
        case Aggregate():
            for call in node.aggregates:
                if call.distinct:
                    return f"{call.function.upper()}(DISTINCT ...)"
                if call.function not in _BOUNDED_AGGREGATES:
                    return call.function.upper()
            return None
        case Stream() | Relation() | Filter() | Project() | Distinct() | Union():
            return None


def _endless(node: Node) -> list[str]:
    """The unbounded streams whose rows come out of the node one by one (a GROUP BY gives one row per group)."""
    match node:
        case Stream():
            return [node.name] if isinstance(node.window, Unbounded) else []
        case Aggregate():
            return []
        case _:
            return [name for child in node.children for name in _endless(child)]
