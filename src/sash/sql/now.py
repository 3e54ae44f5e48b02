"""NOW(), CURRENT_TIMESTAMP and CURRENT_DATE: the instant T of the answer.

A comparison of a row's time with NOW() holds from an instant on, or until one. So it is not evaluated row by row: it
decides when the row is valid. `ts > NOW() - INTERVAL 1 HOUR` over the time of a stream is its window `[RANGE 1 HOUR]`.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sash.errors import UnsupportedSqlError
from sash.plan.compound import walk
from sash.plan.expressions import Call, Cast, Column, Expression, Literal
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
)
from sash.plan.nodes import walk as walk_plan
from sash.plan.patterns import Pattern, looked_up_side, pattern
from sash.plan.time_bounds import MIRRORED, moved_column, time_columns
from sash.plan.types import BIGINT, DATE, TIMESTAMP, TIMESTAMP_NTZ
from sash.sql.coercion import coerce
from sash.sql.source import SqlText
from sash.time import DAY

NOW, TODAY = "now", "today"
"""Functions that stand for the instant of the answer, and for its day, while a query is bound."""

NAMES = {"now": NOW, "current_timestamp": NOW, "current_date": TODAY, "curdate": TODAY}
_REASON = (
    "it is the instant of the answer, so it can only say when a row is valid: compare a column with it in WHERE, as in "
    "ts > NOW() - INTERVAL 1 HOUR, as a condition of its own or joined by AND"
)


def instant(name: str) -> Expression:
    """The placeholder of NOW() or CURRENT_DATE."""
    return Call(NAMES[name], (), TIMESTAMP if NAMES[name] == NOW else DATE)


def refusal(source: SqlText, node: exp.Expr, clause: str) -> Exception:
    """Why NOW() cannot be used in a clause."""
    written = "CURRENT_DATE" if "date" in node.name.lower() or isinstance(node, exp.CurrentDate) else "NOW()"
    return source.error(UnsupportedSqlError, f"Sash does not run {written} in {clause}: {_REASON}", node)


def reads_now(expression: Expression) -> bool:
    """Whether NOW() or CURRENT_DATE is in the expression."""
    return any(isinstance(part, Call) and part.function in (NOW, TODAY) for part in walk(expression))


def valid_now(source: SqlText, at: exp.Expr, node: Node, conditions: list[Expression]) -> Node:
    """The rows of the node while the conditions, each a comparison with NOW(), hold."""
    for condition in conditions:
        found = _compared(condition)
        if found is None:
            raise source.error(UnsupportedSqlError, f"Sash does not run such a condition on NOW(): {_REASON}", at)
        start, end = found
        if start is not None and _is_past(start, node):
            start = None
        if end is not None and (narrowed := _narrowed_at(end, node)) is not None:
            node, end = narrowed, None
        if start is None and end is None:
            continue
        if pattern(node) > Pattern.WK or not any(isinstance(below, Stream) for below in walk_plan(node)):
            raise source.error(
                UnsupportedSqlError,
                "NOW() decides when a row of a stream is valid, and these rows may end at any time: write the condition in a "
                "subquery over the stream, below GROUP BY, DISTINCT, LIMIT, outer joins and set operators",
                at,
            )
        node = Lifetime(node, start, end)
    return node


def _compared(condition: Expression) -> tuple[Expression | None, Expression | None] | None:
    """From when and until when a comparison with NOW() holds; None if it is something else."""
    if not isinstance(condition, Call) or condition.function not in MIRRORED:
        return None
    function, (one, other) = condition.function, condition.arguments
    if reads_now(one):
        function, one, other = MIRRORED[function], other, one
    now = _instant(other)
    if reads_now(one) or now is None:
        return None
    grain, later = now
    moment = coerce(one, TIMESTAMP) if one.dtype == DATE else one
    if moment.dtype not in (TIMESTAMP, TIMESTAMP_NTZ):
        return None
    first, after = _added(moment, -later), _added(moment, grain - later)
    match function:
        case "gt":
            return None, first
        case "ge":
            return None, after
        case "le":
            return first, None
        case "lt":
            return after, None
        case _:
            return first, after


def _instant(expression: Expression) -> tuple[int, int] | None:
    """NOW() or CURRENT_DATE, perhaps moved: for how long it has a value, and the microseconds added; None otherwise."""
    added = 0
    while True:
        match expression:
            case Call("timestamp_add_micros", (inner, Literal(value=int(micros)))):
                expression, added = inner, added + micros
            case Call("date_add" | "date_sub" as name, (inner, Literal(value=int(days)))):
                expression, added = inner, added + (days if name == "date_add" else -days) * DAY
            case Cast():
                expression = expression.argument
            case Call(function) if function in (NOW, TODAY):
                return (1 if function == NOW else DAY), added
            case _:
                return None


def _added(moment: Expression, micros: int) -> Expression:
    if isinstance(moment, Call) and moment.function == "timestamp_add_micros":
        inner, known = moment.arguments
        if isinstance(known, Literal) and isinstance(known.value, int):
            moment, micros = inner, micros + known.value
    return Call("timestamp_add_micros", (moment, Literal(micros, BIGINT)), moment.dtype) if micros else moment


def _is_past(start: Expression, node: Node) -> bool:
    """Whether the instant is never after the arrival of a row."""
    found = moved_column(start)
    return found is not None and found[0] in time_columns(node) and found[1] <= 0


def _narrowed_at(end: Expression, node: Node) -> Node | None:
    """The node whose rows end then, because the window of their stream is shorter; None if that is not possible."""
    found = moved_column(end)
    return None if found is None or found[1] <= 0 else _narrowed(node, *found)


def _narrowed(node: Node, column: int, length: int) -> Node | None:
    """The node over a stream whose window is at most `length` long, if the column is the time of that stream."""
    match node:
        case Stream():
            return _with_window(node, length) if column == node.time else None
        case Filter() | AssignWindows() | Lifetime():
            below = _narrowed(node.child, column, length) if column < len(node.child.schema) else None
            return None if below is None else replace(node, child=below)
        case Project():
            made = node.expressions[column]
            below = _narrowed(node.child, made.index, length) if isinstance(made, Column) else None
            return None if below is None else replace(node, child=below)
        case Union():
            left, right = (_narrowed(side, column, length) for side in node.children)
            return None if left is None or right is None else Union(left, right)
        case Join():
            border = len(node.left.schema)
            if column < border and (node.kind in ("inner", "left", "semi", "anti")):
                left = _narrowed(node.left, column, length)
                return None if left is None else replace(node, left=left)
            if column >= border and node.kind in ("inner", "right") and looked_up_side(node) is not node.right:
                right = _narrowed(node.right, column - border, length)
                return None if right is None else replace(node, right=right)
            return None
        case _:
            return None


def _with_window(stream: Stream, length: int) -> Stream | None:
    timed = stream.schema[stream.time].dtype in (TIMESTAMP, TIMESTAMP_NTZ)
    match stream.window:
        case Unbounded() if timed:
            return replace(stream, window=Range(length))
        case Range(known, None) if timed and not isinstance(stream.window, Aligned):
            return replace(stream, window=Range(min(length, known)))
        case _:
            return None
