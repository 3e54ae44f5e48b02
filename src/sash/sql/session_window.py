"""Spark's `session_window(time, gap)` in GROUP BY: sessions of the rows with equal other keys.

Below the aggregate, rows are labelled by their sessions. The start of a session is the smallest time of its rows, and its
end the largest plus the gap. A row exactly the gap after the last one still belongs to the session. A gap that is not
constant is computed per row: then the end is the largest of the times plus gaps, and rows whose gap is NULL or not greater
than 0 belong to no session.
"""

from __future__ import annotations

from sqlglot import exp

from sash.arguments import whole_number
from sash.errors import TypeMismatchError, UnsupportedSqlError, WindowError
from sash.plan.expressions import Call, Column, Expression, Literal
from sash.plan.nodes import SESSION, Filter, Node, Project, Sessions
from sash.plan.patterns import Pattern, pattern
from sash.plan.sql_types import DayTimeInterval
from sash.plan.time_bounds import time_columns
from sash.plan.types import BIGINT, BOOLEAN, INT, type_name
from sash.sql import intervals
from sash.sql.emit import emits
from sash.sql.expressions import ExpressionBinder
from sash.sql.scope import Entry, Scope
from sash.sql.source import SqlText
from sash.sql.time_windows import duration
from sash.sql.undeclared import reads_undeclared
from sash.sql.window_function import functions_of

_NAME = "session_window"
_ALL, _GAP = "_all", "_gap"
_FIELDS = ("start", "end")


def with_session_column(
    source: SqlText, node: exp.Select, binder: ExpressionBinder, below: Node
) -> tuple[exp.Select, Scope, Node]:
    """The SELECT with columns and aggregates instead of `session_window`, the scope with the columns, and the labelled rows."""
    calls = [call for call in functions_of(node) if call.name.lower() == _NAME]
    if not calls:
        return node, binder.scope, below
    group = node.args.get("group")
    first = calls[0]
    if group is None or not any(_is_session(key) for key in group.expressions):
        raise source.error(UnsupportedSqlError, "session_window(time, gap) is a key of GROUP BY: add it there", first)
    for other in calls[1:]:
        if other.sql() != first.sql():
            raise source.error(UnsupportedSqlError, "a SELECT has one session_window(...)", other)
    if len(first.expressions) != 2:
        raise source.error(UnsupportedSqlError, "write session_window(time, gap)", first)
    gap = _constant_gap(source, first)
    time = binder.bind(first.expressions[0])
    if not isinstance(time, Column) or time.index not in time_columns(below) or pattern(below) > Pattern.WKS:
        raise source.error(
            UnsupportedSqlError,
            "the sessions of session_window are by the TIMESTAMP that is the time of a stream, straight above that stream, "
            "which has no window, or one of time without SLIDE",
            first,
        )
    keys = [_key(source, node, binder, key) for key in group.expressions if not _is_session(key)]
    added = not keys
    closes = reads_undeclared(below)
    gaps: Column | None = None
    if gap is None:
        if not closes:
            problem = (
                "sessions whose gap differs from row to row last until they end: leave the window of the stream out"
            )
            raise source.error(UnsupportedSqlError, problem, first)
        below, gaps = _with(below, _GAP, _gap_of_rows(source, binder, first.expressions[1]))
        below = Filter(below, Call("gt", (gaps, Literal(0, BIGINT)), BOOLEAN))
    if added:
        below, every = _with(below, _ALL, Literal(0, INT))
        keys = [every]
    made = Sessions(
        below,
        tuple(dict.fromkeys(key.index for key in keys)),
        time.index,
        gap or 0,
        closes,
        closes and emits(),
        None if gaps is None else gaps.index,
    )
    label = Column(len(below.schema), SESSION, made.schema[-1].dtype)
    entries = [Entry(_NAME, SESSION, label, hidden=True), Entry(_NAME, _ALL, keys[0], hidden=True)]
    scope = Scope((*binder.scope.entries, *entries), binder.scope.not_carried)
    return _rewritten(source, node.copy(), first, _interval_of(source, first.expressions[1]), added=added), scope, made


def _with(below: Node, name: str, value: Expression) -> tuple[Node, Column]:
    """The rows with one more column, and that column."""
    own = tuple(Column(n, field.name, field.dtype) for n, field in enumerate(below.schema))
    made = Project(below, (*(column.name for column in own), name), (*own, value))
    return made, Column(len(own), name, value.dtype)


def _constant_gap(source: SqlText, call: exp.Expr) -> int | None:
    """The gap of all sessions in microseconds; None if each row has its own."""
    written = call.expressions[1]
    if _chosen(written) or written.find(exp.Column) is not None:
        return None
    gap = duration(source, written)
    if gap <= 0:
        raise source.error(WindowError, "the gap of a session must be greater than 0", call)
    return gap


def _gap_of_rows(source: SqlText, binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """The gap of each row in microseconds."""
    gap = binder.bind(_interval_of(source, node))
    if not isinstance(gap.dtype, DayTimeInterval):
        raise source.error(
            TypeMismatchError,
            f"the gap of a session is {type_name(gap.dtype)}: write an INTERVAL DAY TO SECOND, or a CASE of texts such as '5 minutes'",
            node,
        )
    return intervals.stored(gap)


def _chosen(node: exp.Expr) -> list[exp.Expr]:
    """The values of CASE, IF or COALESCE; nothing of anything else."""
    match node:
        case exp.Case():
            return [*(each.args["true"] for each in node.args["ifs"]), *filter(None, [node.args.get("default")])]
        case exp.Anonymous() if node.name.lower() == "if":
            return list(node.expressions[1:])
        case exp.Anonymous() if node.name.lower() in ("coalesce", "ifnull", "nvl"):
            return list(node.expressions)
    return []


def _interval_of(source: SqlText, node: exp.Expr) -> exp.Expr:
    """The gap with INTERVALs for the texts that are its values."""
    root = exp.Paren(this=node.copy())
    root.meta.update(node.meta)
    pending = [root.this]
    while pending:
        one = pending.pop()
        if isinstance(one, exp.Paren):
            pending.append(one.this)
        elif isinstance(one, exp.Literal) and one.is_string:
            one.replace(_interval(duration(source, one)))
        else:
            pending.extend(_chosen(one))
    return root


def _interval(micros: int) -> exp.Expr:
    return exp.Interval(this=exp.Literal.string(str(micros)), unit=exp.var("MICROSECOND"))


def _is_session(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == _NAME


def _key(source: SqlText, node: exp.Select, binder: ExpressionBinder, key: exp.Expr) -> Column:
    """Another key of GROUP BY, which must be a column: sessions are kept by it, in the shard that groups by it."""
    written: exp.Expr | None = key
    if isinstance(key, exp.Literal) and not key.is_string:
        position = whole_number(str(key.this), len(node.expressions))
        written = node.expressions[position - 1].unalias() if position else None
    elif isinstance(key, exp.Column) and not key.table and not binder.scope.find(key.name, None):
        items = [item for item in node.expressions if item.alias_or_name.lower() == key.name.lower()]
        written = items[0].unalias() if items else key
    bound = None if written is None else binder.bind(written)
    if not isinstance(bound, Column):
        raise source.error(
            UnsupportedSqlError, "beside session_window, GROUP BY takes columns: compute this key in a subquery", key
        )
    return bound


def _rewritten(source: SqlText, node: exp.Select, call: exp.Expr, gap: exp.Expr, *, added: bool) -> exp.Select:
    """The SELECT with the label as a key, and aggregates of the time instead of the bounds of sessions."""
    time = call.expressions[0]
    group = node.args["group"]
    keys = [_label(key, SESSION) if _is_session(key) else key for key in group.expressions]
    group.set("expressions", [*keys, _label(call, _ALL)] if added else keys)
    for item in list(node.expressions):
        name = _NAME if _is_whole(item) else _field(item)
        if name is not None:
            item.replace(exp.alias_(item.copy(), name))
    for clause in ("expressions", "having", "order", "qualify"):
        given = node.args.get(clause)
        for part in given if isinstance(given, list) else [given] if given else []:
            for below in list(part.find_all(exp.Column, exp.Dot, exp.Anonymous)):
                field = _field(below)
                if below.find_ancestor(exp.Select) is not node:
                    continue
                if field is not None:
                    below.replace(_bound(source, below, field, time, gap))
                elif _is_whole(below) and not isinstance(below.parent, exp.Dot):
                    fields = [(exp.Literal.string(name), _bound(source, below, name, time, gap)) for name in _FIELDS]
                    whole = exp.Anonymous(this="named_struct", expressions=[each for pair in fields for each in pair])
                    whole.meta.update(below.meta)
                    below.replace(whole)
    return node


def _is_whole(node: exp.Expr) -> bool:
    """Whether the node is a session as a STRUCT."""
    return _is_session(node) or (isinstance(node, exp.Column) and node.name.lower() == _NAME and not node.table)


def _field(node: exp.Expr) -> str | None:
    """The field of a session that the node is: `session_window.start`, or `session_window(ts, gap).start`."""
    if isinstance(node, exp.Column) and node.table.lower() == _NAME and node.name != SESSION:
        return node.name
    return str(node.expression.name) if isinstance(node, exp.Dot) and _is_session(node.this) else None


def _bound(source: SqlText, at: exp.Expr, field: str, time: exp.Expr, gap: exp.Expr) -> exp.Expr:
    if field.lower() not in _FIELDS:
        raise source.error(UnsupportedSqlError, f"a session has the fields start and end, not {field}", at)
    starts, varies = field.lower() == "start", gap.find(exp.Column) is not None
    value = exp.Add(this=time.copy(), expression=gap.copy()) if varies and not starts else time.copy()
    aggregate = exp.Anonymous(this="min" if starts else "max", expressions=[value])
    aggregate.meta.update(at.meta)
    if starts or varies:
        return aggregate
    return exp.Paren(this=exp.Add(this=aggregate, expression=gap.copy()))


def _label(at: exp.Expr, name: str) -> exp.Column:
    column = exp.column(name, _NAME)
    column.this.meta.update(at.meta)
    return column
