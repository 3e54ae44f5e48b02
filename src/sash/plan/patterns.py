"""Update patterns: how the rows of a plan's output expire, and whether that is known in advance (paper 5).

MONO: rows never expire. WKS (weakest): all rows live equally long, so they expire in order of arrival. WK (weak): the
expiration time is known on arrival, but rows expire in another order. REPLACE, written WK(replace): a row is replaced
by the next row of its group. STR (strict): a row may end at any time, so its end must be sent as a retraction.
"""

from __future__ import annotations

import enum
import functools

from sash.plan import nodes
from sash.plan.expressions import STEPWISE


@functools.total_ordering
class Pattern(enum.Enum):
    """The update patterns, from the simplest to the most general; EXPLAIN prints `label`."""

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


@nodes.once_per_node
def pattern(node: nodes.Node) -> Pattern:
    """The update pattern of a node's output. A node over relations that never change is MONO.

    EXCEPT is strict because an arrival on its right removes rows from the answer; TopK because a new row may push out the
    last one. Semi and anti joins are strict because a row stays only while it has matches, or none, on the other side;
    outer joins because a row padded with NULLs is retracted when its first match arrives and returns when the last match
    ends. A count window is strict because a row ends when the n-th row after it arrives. A join with a relation that
    changes is strict because an update may end any result. A join with a non-retroactive relation, or with one that never
    changes, has the pattern of its other input: its matches are fixed on arrival. A stream without a window is MONO.
    """
    if is_static(node):
        return Pattern.MONO
    match node:
        case nodes.Stream():
            return _of_window(node.window)
        case nodes.Relation():
            return Pattern.STR
        case nodes.Filter() | nodes.Project() | nodes.Expand() | nodes.Generate() | nodes.AssignWindows():
            return pattern(node.child)
        case nodes.Final():
            return Pattern.MONO
        case nodes.Sessions():
            if node.emits:
                return Pattern.WK
            return Pattern.STR if node.closes else pattern(node.child)
        case nodes.Lifetime():
            endless = node.end is None and pattern(node.child) == Pattern.MONO
            return Pattern.MONO if endless else max(pattern(node.child), Pattern.WK)
        case nodes.Join():
            return _of_join(node)
        case nodes.Aggregate():
            return Pattern.REPLACE
        case nodes.Distinct():
            below = pattern(node.child)
            if below == Pattern.MONO:
                return Pattern.MONO
            return Pattern.WK if below <= Pattern.WK else Pattern.STR
        case nodes.Union():
            return _of_union(node)
        case nodes.Intersect():
            return Pattern.WK if max(pattern(node.left), pattern(node.right)) <= Pattern.WKS else Pattern.STR
        case nodes.Except() | nodes.TopK() | nodes.Over() | nodes.Alike():
            return Pattern.STR


def _of_window(window: nodes.Window) -> Pattern:
    match window:
        case nodes.Range():
            return Pattern.WKS
        case nodes.Rows():
            return Pattern.STR
        case nodes.Unbounded():
            return Pattern.MONO


def _of_join(node: nodes.Join) -> Pattern:
    if (side := looked_up_side(node)) is not None:
        return pattern(node.left if side is node.right else node.right)
    if node.kind != "inner":
        return Pattern.STR
    left, right = pattern(node.left), pattern(node.right)
    if max(left, right) >= Pattern.REPLACE:
        return Pattern.STR
    return Pattern.MONO if left == right == Pattern.MONO else Pattern.WK


def _of_union(node: nodes.Union) -> Pattern:
    """Rows of windows of different lengths do not expire in order of arrival."""
    left, right = pattern(node.left), pattern(node.right)
    if left == right == Pattern.MONO:
        return Pattern.MONO
    if left == right == Pattern.WKS:
        windows = {below.window for below in nodes.walk(node) if isinstance(below, nodes.Stream)}
        return Pattern.WKS if len(windows) == 1 else Pattern.WK
    return max(left, right, Pattern.WK)


@nodes.once_per_node
def is_static(node: nodes.Node) -> bool:
    """Whether the node reads only relations that never change."""
    match node:
        case nodes.Stream():
            return False
        case nodes.Relation():
            return not node.changes
        case _:
            return all(is_static(child) for child in node.children)


def is_table(node: nodes.Node) -> bool:
    """Whether rows can be looked up in the node: a relation that never changes, perhaps filtered, projected or expanded."""
    while isinstance(node, nodes.Filter | nodes.Project | nodes.Expand):
        node = node.child
    return isinstance(node, nodes.Relation) and not node.changes


def is_nonretroactive(node: nodes.Node) -> bool:
    """Whether the node is a non-retroactive relation, whose updates apply only to rows that arrive later."""
    while isinstance(node, nodes.Filter | nodes.Project):
        node = node.child
    return isinstance(node, nodes.Relation) and node.changes and not node.retroactive


def looked_up_side(node: nodes.Join) -> nodes.Node | None:
    """The side of the join in which rows are only looked up, because matches are fixed on arrival; None if neither is."""
    if node.kind in ("inner", "left", "semi", "anti") and (is_static(node.right) or is_nonretroactive(node.right)):
        return node.right
    if node.kind in ("inner", "right") and (is_static(node.left) or is_nonretroactive(node.left)):
        return node.left
    return None


_BOUNDED_AGGREGATES = STEPWISE | {"min", "max"}
"""Aggregates that need a fixed amount of state per group if rows never expire."""


def row_keeping_operator(node: nodes.Node) -> str | None:
    """The name of the operator in messages, if it keeps whole rows for as long as they live."""
    match node:
        case nodes.Join():
            if looked_up_side(node) is not None:
                return None
            return "a join" if node.kind == "inner" else f"{node.kind.upper()} JOIN"
        case nodes.Except():
            return "EXCEPT"
        case nodes.Intersect():
            return "INTERSECT"
        case nodes.TopK():
            return "ORDER BY ... LIMIT"
        case nodes.Over():
            return f"{node.calls[0].function.upper()}(...) OVER"
        case nodes.Alike():
            return "a set of alike queries"
        case nodes.Aggregate():
            for call in node.aggregates:
                if call.distinct:
                    return f"{call.function.upper()}(DISTINCT ...)"
                if call.function not in _BOUNDED_AGGREGATES:
                    user = None if call.detail is None else call.detail.user
                    return call.function.upper() if user is None else user.name.upper()
            return None
        case (
            nodes.Stream()
            | nodes.Relation()
            | nodes.Filter()
            | nodes.Project()
            | nodes.Expand()
            | nodes.Generate()
            | nodes.Distinct()
            | nodes.Union()
        ):
            return None
        case nodes.AssignWindows() | nodes.Lifetime() | nodes.Sessions() | nodes.Final():
            return None


def unbounded_streams(node: nodes.Node, *, endless: bool = False) -> list[str]:
    """The unbounded streams whose rows the node outputs one by one (a GROUP BY outputs one row per group).

    They are those whose rows must not be kept for ever, or if `endless` those whose rows may be.
    """
    match node:
        case nodes.Stream():
            return [node.name] if isinstance(node.window, nodes.Unbounded) and node.endless == endless else []
        case nodes.Aggregate():
            return []
        case nodes.Lifetime() if node.end is not None:
            return []
        case nodes.Sessions() if node.closes:
            return []
        case _:
            return [name for child in node.children for name in unbounded_streams(child, endless=endless)]
