"""EMIT ON WINDOW CLOSE: a query over windows whose rows are emitted once, when their window ends.

Rows are valid for the instant at which their window ends. So the query is computed then, over all rows of the window, and
nothing is kept of it afterwards. What it adds stays in the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sash.errors import UnsupportedSqlError
from sash.plan.nodes import Aggregate, Aligned, Final, Node, Sessions, Stream
from sash.sql.source import SqlText

_emitting: ContextVar[bool] = ContextVar("emitting", default=False)


@contextmanager
def emitting(wanted: bool) -> Iterator[None]:
    """Bind a query with EMIT ON WINDOW CLOSE."""
    before = _emitting.set(wanted)
    try:
        yield
    finally:
        _emitting.reset(before)


def emits() -> bool:
    """Whether the query that is bound has EMIT ON WINDOW CLOSE."""
    return _emitting.get()


def emitted(source: SqlText, plan: Node, at: int) -> Node:
    """The plan whose rows are only added. All its streams must be in windows that end."""
    problem = None
    pending = [plan]
    while pending:
        node = pending.pop()
        if isinstance(node, Sessions) and node.emits:
            continue
        pending.extend(node.children)
        match node:
            case Stream(window=Aligned(closing=True)):
                continue
            case Stream():
                problem = f"assign the rows of {node.name} by their time with TUMBLE, HOP, CUMULATE, window(...) or session_window(...), without a "
                problem += "window in brackets"
            case Aggregate(keys=()):
                problem = "group by the window: an aggregate of all rows has a row without any window, too"
            case _:
                continue
        raise source.error(
            UnsupportedSqlError, f"EMIT ON WINDOW CLOSE emits what windows have when they end: {problem}", at
        )
    return Final(plan)
