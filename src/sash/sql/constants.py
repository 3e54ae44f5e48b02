"""Relations made of constants: VALUES, and what a SELECT without FROM reads."""

from __future__ import annotations

from sqlglot import exp

from sash.errors import TypeMismatchError, UnsupportedSqlError
from sash.plan.catalog import Catalog
from sash.plan.expressions import Expression
from sash.plan.nodes import ONE_ROW, Expand, Node, Project
from sash.sql.coercion import unify_alike
from sash.sql.expressions import ExpressionBinder
from sash.sql.scope import Scope
from sash.sql.source import SqlText
from sash.sql.spark_functions import SparkFunctions

MOST_VALUES = 200_000
"""The largest number of values of a VALUES."""


def bind_values(source: SqlText, catalog: Catalog, node: exp.Expr) -> Node:
    """The rows of a VALUES, with the columns col1, col2 and so on; every column has the common type of its values."""
    rows = [_row(row) for row in node.expressions]
    width = len(rows[0])
    for row, values in zip(node.expressions, rows, strict=True):
        if len(values) != width:
            raise source.error(
                TypeMismatchError, f"the rows of VALUES have {width} and {len(values)} columns: give all as many", row
            )
    if len(rows) * width > MOST_VALUES:
        raise source.error(
            UnsupportedSqlError, f"VALUES may have {MOST_VALUES:,} values: register a relation instead", node
        )
    binder = ExpressionBinder(
        source, Scope(()), SparkFunctions(source, catalog.spark_type, ONE_ROW, catalog.user), "VALUES"
    )
    bound = [[binder.bind(value) for value in row] for row in rows]
    columns = [_column(source, node, number, [row[number] for row in bound]) for number in range(width)]
    lists = tuple(zip(*columns, strict=True))
    names = tuple(f"col{number}" for number in range(1, width + 1))
    return Project(ONE_ROW, names, lists[0]) if len(lists) == 1 else Expand(ONE_ROW, names, lists)


def _row(node: exp.Expr) -> list[exp.Expr]:
    """The values of a row; one without parentheses has a single value."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]


def _column(source: SqlText, node: exp.Expr, number: int, values: list[Expression]) -> list[Expression]:
    try:
        return unify_alike(values, f"column {number + 1} of VALUES")
    except TypeMismatchError as error:
        raise source.error(TypeMismatchError, str(error), node) from None
