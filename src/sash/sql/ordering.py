"""ORDER BY, LIMIT and OFFSET of any query, and projections that are omitted if they change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sash.errors import UnsupportedSqlError
from sash.plan.expressions import Column, Expression, Literal, substitute
from sash.plan.nodes import Node, Project, SortKey, TopK
from sash.sql.source import SqlText, whole_number

MOST_ROWS = 2**31 - 1
"""The largest LIMIT and OFFSET, as in Spark."""


@dataclass(frozen=True)
class SortItem:
    """One expression of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool
    node: exp.Expr


def sort_items(source: SqlText, order: exp.Expr, bind: Callable[[exp.Expr], Expression]) -> list[SortItem]:
    """The expressions of ORDER BY; NULLs come first by default if the order is ascending."""
    source.refuse_all_but(order, "expressions")
    items = []
    for node in order.expressions:
        source.refuse_all_but(node, "this", "desc", "nulls_first")
        descending = bool(node.args.get("desc"))
        nulls_first = node.args.get("nulls_first")
        nulls_first = not descending if nulls_first is None else bool(nulls_first)
        items.append(SortItem(bind(node.this), descending, nulls_first, node))
    return items


def limited(source: SqlText, query: exp.Expr, node: Node, order: tuple[SortKey, ...]) -> Node:
    """The node under the LIMIT and OFFSET of the query."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is None:
        if query.args.get("order") is not None:
            raise source.error(
                UnsupportedSqlError,
                "ORDER BY needs LIMIT, because the answer is a bag without an order: add LIMIT, or remove ORDER BY",
                query.args["order"],
            )
        if offset is not None:
            raise source.error(UnsupportedSqlError, "Sash does not run OFFSET without LIMIT", offset)
        return node
    if not isinstance(limit, exp.Limit):
        raise source.error(UnsupportedSqlError, f"Sash does not run {limit.key.upper()}; write LIMIT", limit)
    source.refuse_all_but(limit, "expression")
    skipped = 0
    if offset is not None:
        source.refuse_all_but(offset, "expression")
        skipped = _count(source, offset.expression, "OFFSET")
    return TopK(node, order, _count(source, limit.expression, "LIMIT"), skipped)


def _count(source: SqlText, node: exp.Expr, clause: str) -> int:
    number = whole_number(str(node.this), MOST_ROWS) if isinstance(node, exp.Literal) and not node.is_string else None
    if number is None:
        raise source.error(UnsupportedSqlError, f"{clause} takes a whole number of at most {MOST_ROWS:,}", node)
    return number


def project(node: Node, names: list[str], expressions: list[Expression]) -> Node:
    """The node with these output columns; the node itself if it has them already. Two projections become one."""
    schema = node.schema
    if len(schema) == len(expressions) and all(
        isinstance(e, Column) and e.index == i and names[i] == schema[i].name for i, e in enumerate(expressions)
    ):
        return node
    if isinstance(node, Project) and all(isinstance(e, Column | Literal) for e in node.expressions):
        return Project(node.child, tuple(names), tuple(substitute(e, node.expressions) for e in expressions))
    return Project(node, tuple(names), tuple(expressions))
