"""The text of a query or script: the positions of nodes in it, and errors with positions."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from sqlglot import exp

from sash.errors import SqlSyntaxError, UnsupportedSqlError
from sash.sql.words import refused_part


class SqlText:
    """The text of one query or script."""

    def __init__(self, text: str) -> None:
        self.text = text

    def position(self, where: exp.Expr | int | None) -> tuple[int | None, int | None]:
        """Line and column, both from 1, of an offset or of the leftmost token of a node (or of what is around it)."""
        while isinstance(where, exp.Expr):
            starts = [node.meta["start"] for node in where.walk() if node.meta.get("start") is not None]
            where = min(starts) if starts else where.parent
        if where is None:
            return None, None
        return self.text.count("\n", 0, where) + 1, where - self.text.rfind("\n", 0, where)

    def error(self, kind: type[SqlSyntaxError], message: str, where: exp.Expr | int | None = None) -> SqlSyntaxError:
        """An error of that class with the position in the text."""
        return kind(message, *self.position(where))

    def refuse_all_but(self, node: exp.Expr, *handled: str) -> None:
        """Reject parts of the node that its binder does not handle, so that nothing is ignored silently."""
        for name, value in node.args.items():
            if name in handled or not _is_set(value):
                continue
            inner = next((part for part in _parts(value)), None)
            raise self.error(UnsupportedSqlError, f"Sash does not run {refused_part(node, name)}", inner or node)


def too_deep(source: SqlText) -> SqlSyntaxError:
    """The error for a query whose parts are nested too deeply."""
    return source.error(
        UnsupportedSqlError,
        "the query is nested too deeply: write long chains of operators without parentheses, and fewer subqueries or queries of "
        "WITH inside each other",
    )


def listed(names: Iterable[str], most: int = 30) -> str:
    """The different names, separated by commas; the first ones if there are many."""
    different = list(dict.fromkeys(names))
    rest = f" and {len(different) - most:,} more" if len(different) > most else ""
    return ", ".join(different[:most]) + rest


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """'; did you mean x?', or nothing."""
    close = get_close_matches(name.lower(), {candidate.lower(): None for candidate in known}, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close and close[0] != name.lower() else ""


def _is_set(value: Any) -> bool:
    return value is not None and value is not False and value != []


def _parts(value: Any) -> list[exp.Expr]:
    if isinstance(value, exp.Expr):
        return [value]
    return [part for part in value if isinstance(part, exp.Expr)] if isinstance(value, list) else []
