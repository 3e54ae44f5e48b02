"""Operators that would have to keep every row of an unbounded stream, and so cannot run."""

from __future__ import annotations

from sash.errors import UnboundedStateError
from sash.plan.nodes import Join, Node, walk
from sash.plan.patterns import row_keeping_operator, unbounded_streams
from sash.plan.time_bounds import kept_whole


def refuse_unbounded(node: Node) -> None:
    """Raise UnboundedStateError if some operator would have to keep every row of an unbounded stream."""
    for below in walk(node):
        operator = row_keeping_operator(below)
        if operator is None:
            continue
        stream = next((name for child in _kept(below) for name in unbounded_streams(child)), None)
        if stream is not None:
            bound = ", or bound the times of partners, as in a.ts BETWEEN b.ts - INTERVAL 5 MINUTES AND b.ts"
            raise UnboundedStateError(
                f"{operator} would have to remember every row of stream {stream} for ever: "
                f"give it a window, as in {stream} [RANGE 1 HOUR]{bound if operator == 'a join' else ''}"
            )


def _kept(node: Node) -> list[Node]:
    """The inputs of which the operator keeps rows until they expire."""
    return kept_whole(node) if isinstance(node, Join) else list(node.children)


def endless_state(node: Node) -> list[tuple[str, str]]:
    """The operators that keep rows for ever, by their names in messages, with the streams of those rows."""
    found: dict[tuple[str, str], None] = {}
    for below in walk(node):
        operator = row_keeping_operator(below)
        for child in _kept(below) if operator is not None else ():
            found |= {(operator or "", stream): None for stream in unbounded_streams(child, endless=True)}
    return list(found)
