"""Estimated selectivity of predicates, from their form and the number of values of their columns.

`=` passes the known share of a frequent value, otherwise one value in as many as the column has. An order comparison,
LIKE and any other predicate pass a third of the rows; IS NULL passes one row in twenty. Conjuncts are independent.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from sash.plan.compound import fold
from sash.plan.expressions import Call, Column, Expression, Literal, columns_of, conjuncts
from sash.plan.frequencies import Distribution, Shares

SHARE = 1 / 3
"""The selectivity of order comparisons, LIKE and all predicates without a rule of their own."""
NULL_SHARE = 0.05


def selectivity(predicate: Expression | None, distinct: Sequence[float], frequent: Sequence[Shares] = ()) -> float:
    """The share of rows for which the predicate is true. `distinct` is the number of values of each column, and `frequent`
    has the shares of frequent values, where they are known.

    >>> import pyarrow as pa
    >>> selectivity(Call("eq", (Column(0, "k", pa.int64()), Literal(3, pa.int64())), pa.bool_()), [50])
    0.02
    """
    if predicate is None:
        return 1.0
    return fold(predicate, lambda part, shares: _selectivity(part, shares, distinct, frequent))


def _selectivity(
    predicate: Expression, shares: Sequence[float], distinct: Sequence[float], frequent: Sequence[Shares]
) -> float:
    """The selectivity of a predicate whose subexpressions have these."""
    match predicate:
        case Literal(value=value):
            return 1.0 if value is True else 0.0
        case Call("and"):
            return math.prod(shares)
        case Call("or"):
            return 1 - math.prod(1 - share for share in shares)
        case Call("not"):
            return 1 - shares[0]
        case Call("ne", arguments):
            return 1 - _selectivity(Call("eq", arguments, predicate.dtype), shares, distinct, frequent)
        case Call(
            "eq" | "eq_null_safe",
            (Column() as column, Literal() as literal) | (Literal() as literal, Column() as column),
        ):
            return _share(column, literal, distinct, frequent)
        case Call("eq" | "eq_null_safe", (one, other)):
            return 1 / max(_values(one, distinct), _values(other, distinct))
        case Call("in", (Column() as column, *listed)) if all(isinstance(one, Literal) for one in listed):
            each = (_share(column, one, distinct, frequent) for one in listed if isinstance(one, Literal))
            return min(1.0, sum(each))
        case Call("in", (tested, *listed)):
            return min(1.0, len(listed) / _values(tested, distinct))
        case Call("is_null", _):
            return NULL_SHARE
        case Call("is_not_null", _):
            return 1 - NULL_SHARE
        case _:
            return SHARE


def _share(column: Column, literal: Literal, distinct: Sequence[float], frequent: Sequence[Shares]) -> float:
    """The share of rows whose column equals the literal."""
    count, known = max(distinct[column.index], 1.0), frequent[column.index] if frequent else {}
    if not known or not isinstance(literal.value, Hashable):
        return 1 / count
    return Distribution(count, known).share(literal.value)


def _values(expression: Expression, distinct: Sequence[float]) -> float:
    """The number of values of an expression: the largest of its columns' numbers."""
    match expression:
        case Literal():
            return 1.0
        case Column():
            return max(distinct[expression.index], 1.0)
        case _:
            return max([1.0, *(distinct[column] for column in columns_of(expression))])


def pinned(predicate: Expression) -> dict[int, float]:
    """The columns that the predicate restricts to a few values, with the number of those values."""
    found: dict[int, float] = {}
    for part in conjuncts(predicate):
        match part:
            case Call("eq", (Column() as column, Literal())) | Call("eq", (Literal(), Column() as column)):
                found[column.index] = 1.0
            case Call("in", (Column() as column, *listed)):
                found[column.index] = float(len(listed))
    return found
