"""Spark's `window(time, size [, slide [, start]])` in a SELECT: a STRUCT `window` with the fields `start` and `end`.

The function is not evaluated row by row: rows are assigned to windows below the SELECT, after WHERE, and every call of it
stands for the column that this makes. `window_time(window)` is the last instant of the window.
"""

from __future__ import annotations

from sqlglot import exp

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import Call, Column
from sash.plan.nodes import Node, TimeWindows
from sash.plan.types import struct_of
from sash.sql.expressions import ExpressionBinder
from sash.sql.scope import Entry, Scope
from sash.sql.source import SqlText
from sash.sql.time_windows import assigned, checked, duration

_WINDOW = "window"
_WHOLE = "window()"
"""The qualifier of the whole window, which tells it from the fields, and from a column of that name."""
_CLAUSES = ("expressions", "group", "having", "order", "qualify")


def with_window_column(
    source: SqlText, node: exp.Select, binder: ExpressionBinder, below: Node
) -> tuple[exp.Select, Scope, Node]:
    """The SELECT with columns instead of calls of `window`, the scope with these columns, and the rows assigned to windows."""
    calls = [call for call in functions_of(node) if _is_window(call)]
    if not calls:
        return node, binder.scope, below
    first = calls[0]
    for other in calls[1:]:
        if other.sql() != first.sql():
            raise source.error(
                UnsupportedSqlError, "a SELECT has one window(...): assign rows to the other one in a subquery", other
            )
    arguments = first.expressions
    if not 2 <= len(arguments) <= 4:
        raise source.error(UnsupportedSqlError, "write window(time, size [, slide [, start]])", first)
    size, *others = [duration(source, argument) for argument in arguments[1:]]
    step = others[0] if others else size
    origin = others[1] if len(others) > 1 else 0
    windows = checked(source, first, TimeWindows(size, step, origin))
    below = assigned(source, first, below, binder.bind(arguments[0]), windows)
    width = len(below.schema)
    entries = [
        Entry(_WINDOW, name, Column(width - 2 + n, f"{_WINDOW}.{name}", below.schema[-1].dtype), hidden=True)
        for n, name in enumerate(("start", "end"))
    ]
    fields = [entry.expression for entry in entries]
    whole = Call("struct", tuple(fields), struct_of([(entry.name, entry.expression.dtype) for entry in entries]))
    entries.append(Entry(_WHOLE, _WINDOW, whole, hidden=True))
    scope = Scope((*binder.scope.entries, *entries), binder.scope.not_carried)
    named = scope.find(_WINDOW, None) or any(item.alias.lower() == _WINDOW for item in node.expressions)
    return _rewritten(node.copy(), taken=bool(named)), scope, below


def _parts(node: exp.Select) -> list[exp.Expr]:
    found = [node.args.get(clause) for clause in _CLAUSES]
    return [part for one in found if one for part in (one if isinstance(one, list) else [one])]


def functions_of(node: exp.Select) -> list[exp.Anonymous]:
    """The calls of functions in the SELECT itself, not in its subqueries."""
    found = [call for part in _parts(node) for call in part.find_all(exp.Anonymous)]
    return [call for call in found if call.find_ancestor(exp.Select) is node]


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == _WINDOW and not isinstance(node.parent, exp.Window)


def _rewritten(node: exp.Select, *, taken: bool) -> exp.Select:
    """The SELECT with the column `window`, or its fields, instead of calls; the name may be taken by another column."""
    group = node.args.get("group")
    if group is not None:
        keys: list[exp.Expr] = []
        for key in group.expressions:
            whole = _is_window(key) or (not taken and _is_name(key))
            keys += [_field(key, "start"), _field(key, "end")] if whole else [key]
        group.set("expressions", keys)
    for call in functions_of(node):
        if call.name.lower() == "window_time" and len(call.expressions) == 1:
            micro = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MICROSECOND"))
            call.replace(exp.Paren(this=exp.Sub(this=_field(call, "end"), expression=micro)))
    for call in functions_of(node):
        if not _is_window(call):
            continue
        if isinstance(call.parent, exp.Dot) and call.parent.this is call:
            call.parent.replace(_field(call, call.parent.expression.name))
        else:
            call.replace(_field(call, _WINDOW, _WHOLE))
    names = (
        [] if taken else [column for part in _parts(node) for column in part.find_all(exp.Column) if _is_name(column)]
    )
    for column in names:
        if column.find_ancestor(exp.Select) is node:
            column.replace(_field(column.this, _WINDOW, _WHOLE))
    return node


def _is_name(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name.lower() == _WINDOW and not node.table


def _field(at: exp.Expr, name: str, of: str = _WINDOW) -> exp.Column:
    column = exp.column(name, of)
    column.this.meta.update(at.meta)
    return column
