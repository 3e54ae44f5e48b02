"""Streams for which no window is written: an assignment of their rows to windows decides how long these are valid."""

from __future__ import annotations

from dataclasses import replace

from sash.plan.expressions import Cast, Column
from sash.plan.nodes import (
    Aligned,
    AssignWindows,
    Filter,
    Join,
    Lifetime,
    Node,
    Project,
    Stream,
    TimeWindows,
    Unbounded,
    Undeclared,
    Union,
    with_children,
)
from sash.plan.patterns import looked_up_side
from sash.plan.types import DATE


def with_declared_windows(plan: Node) -> Node:
    """The plan in which a stream without a window is unbounded."""
    made: dict[int, Node] = {}
    pending = [(plan, False)]
    while pending:
        node, inputs_are_done = pending.pop()
        if id(node) in made:
            continue
        if not inputs_are_done:
            pending.append((node, True))
            pending.extend((child, False) for child in node.children)
            continue
        children = tuple(made[id(child)] for child in node.children)
        if isinstance(node, Stream) and isinstance(node.window, Undeclared):
            made[id(node)] = replace(node, window=Unbounded())
        elif all(new is old for new, old in zip(children, node.children, strict=True)):
            made[id(node)] = node
        else:
            made[id(node)] = with_children(node, children)
    return made[id(plan)]


def reads_undeclared(node: Node) -> bool:
    """Whether the node outputs, one by one, the rows of a stream without a window."""
    match node:
        case Stream():
            return isinstance(node.window, Undeclared)
        case Filter() | Project() | AssignWindows():
            return reads_undeclared(node.child)
        case Lifetime():
            return node.end is None and reads_undeclared(node.child)
        case Union():
            return reads_undeclared(node.left) or reads_undeclared(node.right)
        case Join():
            return looked_up_side(node) is node.right and reads_undeclared(node.left)
        case _:
            return False


def with_aligned_window(node: Node, time: int, windows: TimeWindows, *, closing: bool = False) -> Node | None:
    """The node with rows that are valid until the last of their windows ends, by the column `time`.

    None if that is not the time of a stream without a window.
    """
    match node:
        case Stream():
            step = windows.size if windows.cumulative else windows.step
            window = Aligned(windows.size, step=step, origin=windows.origin, closing=closing)
            found = isinstance(node.window, Undeclared) and time == node.time
            return replace(node, window=window) if found else None
        case Project():
            expression = node.expressions[time]
            if isinstance(expression, Cast) and expression.argument.dtype == DATE:
                expression = expression.argument
            below = (
                with_aligned_window(node.child, expression.index, windows, closing=closing)
                if isinstance(expression, Column)
                else None
            )
            return None if below is None else replace(node, child=below)
        case Filter() | Lifetime() | AssignWindows() if time < len(node.child.schema):
            below = with_aligned_window(node.child, time, windows, closing=closing)
            return None if below is None else replace(node, child=below)
        case Union():
            left, right = (with_aligned_window(side, time, windows, closing=closing) for side in node.children)
            return None if left is None or right is None else Union(left, right)
        case Join() if looked_up_side(node) is node.right and time < len(node.left.schema):
            below = with_aligned_window(node.left, time, windows, closing=closing)
            return None if below is None else replace(node, left=below)
        case _:
            return None
