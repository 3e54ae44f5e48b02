"""References of a subquery to columns of the queries around it, while the query is bound.

Such a reference is a constant within the subquery: `outer(depth, number)` is the reference with that number to the query
at that depth, the outermost having depth 0. Unnesting (`unnesting.py`) replaces all of them by columns of joins, so that
no plan has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sash.plan.compound import Compound, rewrite, walk
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.nodes import Node, once_per_node
from sash.plan.types import INT
from sash.sql.scope import Scope
from sash.sql.source import SqlText

OUTER = "outer"
Reference = tuple[int, int]
"""The depth of a query, and the number of the reference to one of its columns."""


@dataclass
class OuterScope:
    """The names of a query as its subqueries see them, and the columns that these refer to."""

    depth: int
    scope: Scope
    references: list[Expression] = field(default_factory=list)
    aggregate: Callable[[exp.Expr], Expression] | None = None
    """Binds an aggregate of the query in one of its subqueries; None in those of WHERE."""
    _numbers: dict[Expression, int] = field(default_factory=dict)

    def lookup(self, source: SqlText, node: exp.Column) -> Expression | None:
        """The reference to the column that the node names; None if the query has no such column."""
        found = self.scope.lookup(source, node)
        return None if found is None else self.reference(found)

    def reference(self, expression: Expression) -> Call:
        """The reference to an expression over the columns of the query; equal expressions have one."""
        number = self._numbers.setdefault(expression, len(self.references))
        if number == len(self.references):
            self.references.append(expression)
        return outer_reference(self.depth, number, expression.dtype)


Scopes = tuple[OuterScope, ...]
"""The queries around a subquery, the outermost first."""


def outer_reference(depth: int, number: int, dtype: pa.DataType) -> Call:
    """The reference of that number to a column of the query at that depth."""
    return Call(OUTER, (Literal(depth, INT), Literal(number, INT)), dtype)


def reference_of(expression: Expression) -> Reference | None:
    """The depth and number, if the expression is a reference to a query around it."""
    if not isinstance(expression, Call) or expression.function != OUTER:
        return None
    depth, number = expression.arguments
    assert isinstance(depth, Literal)
    assert isinstance(number, Literal)
    return depth.value, number.value


def references_of(expressions: Iterable[Expression]) -> frozenset[Reference]:
    """The references in the expressions."""
    parts = (reference_of(part) for expression in expressions for part in walk(expression))
    return frozenset(part for part in parts if part is not None)


@once_per_node
def outer_references(node: Node) -> frozenset[Reference]:
    """The references in the node and everything below it."""
    return references_of(_expressions(node)).union(*map(outer_references, node.children))


def numbers_at(depth: int, references: Iterable[Reference]) -> tuple[int, ...]:
    """The numbers of the references to the query at that depth, in order."""
    return tuple(sorted(number for level, number in references if level == depth))


def replace_references(expression: Expression, depth: int, columns: dict[int, Expression]) -> Expression:
    """The expression with every reference to the query at that depth replaced."""

    def change(part: Expression) -> Expression | None:
        found = reference_of(part)
        return columns[found[1]] if found is not None and found[0] == depth else None

    return rewrite(expression, change)


def _expressions(node: Node) -> Iterator[Expression]:
    """The expressions in the fields of a node of any kind."""
    pending: list[Any] = [getattr(node, each.name) for each in fields(node)]
    while pending:
        value = pending.pop()
        if isinstance(value, Compound):
            yield value  # type: ignore[misc]
        elif isinstance(value, tuple):
            pending.extend(value)
