"""Bound scalar and aggregate expressions: columns are positions, and every expression has a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """The column at `index` of the input."""

    index: int
    name: str
    dtype: pa.DataType


@dataclass(frozen=True)
class Literal:
    """A constant; `value` is the Python value that `pyarrow.scalar(value, dtype)` takes (None for NULL)."""

    value: Any
    dtype: pa.DataType

    @cached_property
    def scalar(self) -> pa.Scalar[Any]:
        """The constant as an Arrow scalar."""
        return pa.scalar(self.value, self.dtype)


@dataclass(frozen=True)
class Call:
    """A function or operator of Sash's own library, under its canonical lower-case name (see sql/functions.py)."""

    function: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType


@dataclass(frozen=True)
class Cast:
    """CAST, or if `lenient` TRY_CAST, which returns NULL where CAST fails."""

    argument: Expression
    dtype: pa.DataType
    lenient: bool = False


@dataclass(frozen=True)
class Case:
    """CASE WHEN condition THEN value ... ELSE otherwise END."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    dtype: pa.DataType


@dataclass(frozen=True)
class SparkFunction:
    """An expression that only Spark can evaluate, so it must stay directly above a source.

    `sql` is Spark SQL in which `{0}`, `{1}` ... stand for the argument expressions.
    """

    sql: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType


Expression = Column | Literal | Call | Cast | Case | SparkFunction


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a GROUP BY; its arguments are columns of the input.

    `function` is one of sum, count, count_star, avg, min, max, median, percentile, var_pop, var_samp,
    stddev_pop, stddev_samp, min_by, max_by, first, last; and, over a kept window only, approx_count_distinct,
    approx_percentile, approx_top_k. `parameter` is PERCENTILE's p or top-k's k, `precision` the precision
    required of an estimate.
    """

    function: str
    arguments: tuple[Column, ...]
    dtype: pa.DataType
    distinct: bool = False
    parameter: float | None = None
    precision: float | None = None


APPROXIMATE = frozenset({"approx_count_distinct", "approx_percentile", "approx_top_k"})
"""Approximate aggregates, available in snapshots of a kept window only."""

ORDERED = frozenset({"min_by", "max_by", "first", "last"})
"""Aggregates that break ties by the rows' times and then by all input columns, in order."""


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct subexpressions."""
    match expression:
        case Column() | Literal():
            return ()
        case Call() | SparkFunction():
            return expression.arguments
        case Cast():
            return (expression.argument,)
        case Case():
            inner = tuple(part for branch in expression.branches for part in branch)
            return inner if expression.otherwise is None else (*inner, expression.otherwise)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, top down."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions of all input columns that the expression reads."""
    return frozenset(node.index for node in walk(expression) if isinstance(node, Column))


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with `change` applied top down; where it returns None, the children are rewritten."""
    changed = change(expression)
    if changed is not None:
        return changed
    match expression:
        case Column() | Literal():
            return expression
        case Call() | SparkFunction():
            return replace(expression, arguments=tuple(rewrite(argument, change) for argument in expression.arguments))
        case Cast():
            return replace(expression, argument=rewrite(expression.argument, change))
        case Case():
            return replace(
                expression,
                branches=tuple((rewrite(when, change), rewrite(then, change)) for when, then in expression.branches),
                otherwise=None if expression.otherwise is None else rewrite(expression.otherwise, change),
            )


def remap(expression: Expression, positions: dict[int, int]) -> Expression:
    """The expression with every column moved to its new position."""
    return rewrite(
        expression, lambda node: replace(node, index=positions[node.index]) if isinstance(node, Column) else None
    )


def substitute(expression: Expression, inputs: tuple[Expression, ...]) -> Expression:
    """The expression with every column replaced by the expression that makes it."""
    return rewrite(expression, lambda node: inputs[node.index] if isinstance(node, Column) else None)


def conjuncts(predicate: Expression) -> list[Expression]:
    """The parts of a conjunction."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for argument in predicate.arguments for part in conjuncts(argument)]
    return [predicate]


def conjunction(parts: list[Expression]) -> Expression | None:
    """The conjunction of the parts; None if there are none."""
    if not parts:
        return None
    result = parts[0]
    for part in parts[1:]:
        result = Call("and", (result, part), pa.bool_())
    return result
