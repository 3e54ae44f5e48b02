"""Aggregates that return sketches: they only merge, so rows must come and leave in panes."""

from __future__ import annotations

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import AggregateCall
from sash.plan.nodes import Aggregate, Node, Over, Range, Relation, Stream, walk


def refuse_sketches_of_rows(plan: Node) -> None:
    """Raise UnsupportedSqlError for a sketch of rows that leave the window one by one, not with their pane of SLIDE."""
    for node in walk(plan):
        match node:
            case Aggregate() if name := _sketch(node.aggregates):
                if (source := next(filter(_changes_by_row, walk(node.child)), None)) is not None:
                    assert isinstance(source, Stream | Relation)
                    raise UnsupportedSqlError(
                        f"{name} needs windows with SLIDE: a sketch cannot take back rows that leave a window one by one. "
                        f"Write {source.name} [RANGE 1 HOUR SLIDE 1 MINUTE], or use COUNT(DISTINCT x), which is exact"
                    )
            case Over() if name := _sketch([call.aggregate for call in node.calls if call.aggregate is not None]):
                raise UnsupportedSqlError(
                    f"{name} cannot be used with OVER, since a sketch cannot take back the rows that leave a frame"
                )
            case _:
                pass


def _sketch(calls: tuple[AggregateCall, ...] | list[AggregateCall]) -> str | None:
    codes = (call.detail.user for call in calls if call.detail is not None and call.detail.user is not None)
    return next((code.name.upper() for code in codes if not code.forgets), None)


def _changes_by_row(node: Node) -> bool:
    match node:
        case Stream():
            return not (isinstance(node.window, Range) and node.window.slide is not None)
        case Relation():
            return node.changes
        case _:
            return False
