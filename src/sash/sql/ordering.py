"""ORDER BY, LIMIT and OFFSET of any query, and projections that are omitted if they change nothing.

An answer is a bag. With LIMIT or OFFSET, ORDER BY decides which rows are in it; otherwise it only decides the order in
which the rows of the outermost query are shown, and is ignored in subqueries.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sash.arguments import whole_number
from sash.errors import TypeMismatchError, UnsupportedSqlError
from sash.plan.expressions import Column, Expression, Literal, substitute
from sash.plan.nodes import Node, Project, SortKey, TopK
from sash.plan.sql_types import VARIANT
from sash.plan.types import Schema, holds, is_orderable, type_name
from sash.sql.source import SqlText
from sash.sql.words import word_of

MOST_ROWS = 2**31 - 1
"""The largest LIMIT and OFFSET, as in Spark."""


@dataclass(frozen=True)
class SortItem:
    """One expression of ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool
    node: exp.Expr


@dataclass(frozen=True)
class Query:
    """The plan of a query, and the order in which its rows are shown if it is the outermost one."""

    plan: Node
    order: tuple[SortKey, ...] = ()
    schema: Schema = ()
    """The columns of the outermost query, if some have types that only SQL has: those of the plan have their storage's."""


def sort_items(
    source: SqlText,
    order: exp.Expr,
    bind: Callable[[exp.Expr], Expression],
    outputs: Sequence[Expression] = (),
    *,
    named_all: bool = True,
) -> list[SortItem]:
    """The expressions of ORDER BY; NULLs come first by default if the order is ascending.

    `outputs` are the output columns, which ORDER BY ALL stands for, unless there is a column of that name (`named_all`);
    without them, as in a window, ALL is the name of a column.
    """
    source.refuse_all_but(order, "expressions")
    items: list[SortItem] = []
    for node in order.expressions:
        source.refuse_all_but(node, "this", "desc", "nulls_first")
        descending, nulls_first = direction_of(node)
        everything = len(order.expressions) == 1 and _is_all(node.this) and not named_all
        keys = outputs if everything else [bind(node.this)]
        refuse_maps(source, keys, "ORDER BY", node)
        items.extend(SortItem(key, descending, nulls_first, node) for key in keys)
    return items


def refuse_maps(source: SqlText, keys: Sequence[Expression], what: str, node: exp.Expr) -> None:
    """Raise an error if a key of an operator that compares values is, or contains, a map or a VARIANT."""
    refuse_variants(source, keys, what, node)
    for key in keys:
        if not is_orderable(key.dtype):
            raise source.error(
                TypeMismatchError,
                f"{what} cannot compare {type_name(key.dtype)}: use map_entries, or the keys and values that you need",
                node,
            )


def refuse_variants(source: SqlText, keys: Sequence[Expression], what: str, node: exp.Expr) -> None:
    """Raise an error if a key is, or contains, a VARIANT."""
    for key in keys:
        if holds(key.dtype, lambda part: part == VARIANT):
            raise source.error(
                TypeMismatchError,
                f"{what} cannot compare {type_name(key.dtype)}: cast it, or what you need of it",
                node,
            )


def direction_of(node: exp.Expr) -> tuple[bool, bool]:
    """Whether a sort key is descending, and whether NULLs come first."""
    descending, nulls_first = bool(node.args.get("desc")), node.args.get("nulls_first")
    return descending, not descending if nulls_first is None else bool(nulls_first)


def _is_all(node: exp.Expr) -> bool:
    """Whether the node is the word ALL of ORDER BY ALL."""
    return isinstance(node, exp.Column) and not node.table and not node.this.quoted and node.name.lower() == "all"


def sorted_and_limited(
    source: SqlText,
    query: exp.Expr,
    node: Node,
    order: Sequence[SortItem],
    names: list[str],
    expressions: list[Expression],
) -> Query:
    """The node with these output columns, under the ORDER BY, LIMIT and OFFSET of the query.

    What ORDER BY needs besides is computed for LIMIT alone: rows are shown by what they contain, hence by the keys up to the
    first that is not an output column.
    """
    wide, keys = list(expressions), []
    for key in order:
        if key.expression not in wide:
            wide.append(key.expression)
        keys.append(SortKey(wide.index(key.expression), key.descending, key.nulls_first))
    shown = tuple(itertools.takewhile(lambda key: key.column < len(names), keys))
    if not has_limit(query):
        return Query(limited(source, query, project(node, names, expressions), ()), shown)
    hidden = [f"_order{number}" for number in range(1, len(wide) - len(names) + 1)]
    node = limited(source, query, project(node, names + hidden, wide), tuple(keys))
    if hidden:
        fields = node.schema[: len(names)]
        node = project(node, names, [Column(index, field.name, field.dtype) for index, field in enumerate(fields)])
    return Query(node, shown)


def has_limit(query: exp.Expr) -> bool:
    """Whether LIMIT or OFFSET leaves out rows of the query; LIMIT ALL does not."""
    limit = query.args.get("limit")
    return query.args.get("offset") is not None or (limit is not None and not _is_limit_all(limit))


def _is_limit_all(limit: exp.Expr) -> bool:
    word = limit.args.get("expression")
    return isinstance(limit, exp.Limit) and isinstance(word, exp.Var) and word.name.upper() == "ALL"


def limited(source: SqlText, query: exp.Expr, node: Node, order: tuple[SortKey, ...]) -> Node:
    """The node under the LIMIT and OFFSET of the query."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    most, skipped = MOST_ROWS, 0
    if limit is not None:
        if not isinstance(limit, exp.Limit):
            raise source.error(UnsupportedSqlError, f"Sash does not run {word_of(limit)}; write LIMIT", limit)
        source.refuse_all_but(limit, "expression")
        if not _is_limit_all(limit):
            most = _count(source, limit.expression, "LIMIT")
    if offset is not None:
        source.refuse_all_but(offset, "expression")
        skipped = _count(source, offset.expression, "OFFSET")
    return TopK(node, order, most, skipped) if has_limit(query) else node


def _count(source: SqlText, node: exp.Expr, clause: str) -> int:
    number = _constant(node)
    if number is None or not 0 <= number <= MOST_ROWS:
        raise source.error(UnsupportedSqlError, f"{clause} takes a constant whole number from 0 to {MOST_ROWS:,}", node)
    return number


def _constant(node: exp.Expr) -> int | None:
    """The whole number that the node computes from constants; None if it computes something else."""
    match node:
        case exp.Literal() if not node.is_string:
            return whole_number(str(node.this), MOST_ROWS)
        case exp.Paren():
            return _constant(node.this)
        case exp.Neg():
            inner = _constant(node.this)
            return None if inner is None else -inner
        case exp.Cast() if node.to.this in exp.DataType.INTEGER_TYPES:
            literal = node.this
            if isinstance(literal, exp.Literal) and literal.is_string:
                return whole_number(str(literal.this), MOST_ROWS)
            return _constant(literal)
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = _constant(node.this), _constant(node.expression)
            if left is None or right is None:
                return None
            return (
                left + right
                if isinstance(node, exp.Add)
                else left - right
                if isinstance(node, exp.Sub)
                else left * right
            )
        case _:
            return None


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
