"""Spark's `window(time, size [, slide [, start]])` in a SELECT: a column `window` with the fields `start` and `end`.

The function is not evaluated row by row: rows are assigned to windows below the SELECT, after WHERE, and every call of it
stands for the column that this makes. `window_time(window)` is the last instant of the window.
"""

from __future__ import annotations

from sqlglot import exp

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import Column
from sash.plan.nodes import Node, TimeWindows
from sash.sql.expressions import ExpressionBinder
from sash.sql.scope import Entry, Scope
from sash.sql.source import SqlText
from sash.sql.time_windows import assigned, checked, duration

_WINDOW = "window"
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
    scope = Scope((*binder.scope.entries, *entries), binder.scope.not_carried)
    return _rewritten(source, node.copy()), scope, below


def _parts(node: exp.Select) -> list[exp.Expr]:
    found = [node.args.get(clause) for clause in _CLAUSES]
    return [part for one in found if one for part in (one if isinstance(one, list) else [one])]


def functions_of(node: exp.Select) -> list[exp.Anonymous]:
    """The calls of functions in the SELECT itself, not in its subqueries."""
    found = [call for part in _parts(node) for call in part.find_all(exp.Anonymous)]
    return [call for call in found if call.find_ancestor(exp.Select) is node]


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == _WINDOW and not isinstance(node.parent, exp.Window)


def _rewritten(source: SqlText, node: exp.Select) -> exp.Select:
    """The SELECT with the fields of the column `window` instead of calls of the function."""
    group = node.args.get("group")
    if group is not None:
        keys: list[exp.Expr] = []
        for key in group.expressions:
            whole = _is_window(key) or (isinstance(key, exp.Column) and key.name.lower() == _WINDOW and not key.table)
            keys += [_field(key, "start"), _field(key, "end")] if whole else [key]
        group.set("expressions", keys)
    for call in functions_of(node):
        if call.name.lower() == "window_time" and len(call.expressions) == 1:
            micro = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MICROSECOND"))
            call.replace(exp.Paren(this=exp.Sub(this=_field(call, "end"), expression=micro)))
    for call in functions_of(node):
        if not _is_window(call):
            continue
        if not isinstance(call.parent, exp.Dot) or call.parent.this is not call:
            raise source.error(UnsupportedSqlError, "select the fields of a window: window.start and window.end", call)
        call.parent.replace(_field(call, call.parent.expression.name))
    return node


def _field(at: exp.Expr, name: str) -> exp.Column:
    column = exp.column(name, _WINDOW)
    column.this.meta.update(at.meta)
    return column
