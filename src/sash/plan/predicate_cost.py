"""Estimated cost of a predicate, in comparisons of two numbers, from the functions that it calls.

Functions of text cost more than arithmetic, and pattern matching costs most.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sash.plan.compound import children, walk
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import (
    Call,
    Case,
    Column,
    Expression,
    Lambda,
    Literal,
    SparkFunction,
    UserCall,
    Variable,
    conjunction,
)
from sash.plan.selectivity import selectivity

_TEXT = 8.0
_PATTERN = 40.0
_PATTERNS = frozenset({"like", "ilike", "rlike", "md5", "sha2"})


def predicate_cost(predicate: Expression) -> float:
    """The cost of testing the predicate on one row, in comparisons of numbers.

    >>> one, two = Column(0, "a", pa.int64()), Column(1, "b", pa.int64())
    >>> name, other = Column(2, "n", pa.string()), Column(3, "o", pa.string())
    >>> less = Call("lt", (one, two), pa.bool_())
    >>> [predicate_cost(less), predicate_cost(Call("lt", (name, other), pa.bool_())), predicate_cost(Call("like", (name, other), pa.bool_()))]
    [1.0, 8.0, 40.0]
    """
    return sum(_of(part) for part in walk(predicate))


def _of(part: Expression) -> float:
    match part:
        case Column() | Literal() | Variable():
            return 0.0
        case Case():
            return float(len(part.branches))
        case SparkFunction() | UserCall() | Lambda():
            return _PATTERN
        case Call() if part.function in _PATTERNS:
            return _PATTERN
        case _:
            read = [part.dtype, *(child.dtype for child in children(part))]
            return _TEXT if any(pa.types.is_string(dtype) or pa.types.is_binary(dtype) for dtype in read) else 1.0


def order_predicates(conditions: Sequence[Expression], distinct: Sequence[float]) -> list[Expression]:
    """The conditions as predicates to test in this order, each on the rows that pass the ones before it.

    Cheap conditions are tested first, as one predicate. Expensive ones follow, ordered by the rows they drop per unit of
    cost. Conditions that may fail come last, in the given order, so that they see no more rows than before.
    """
    failing = [condition for condition in conditions if may_fail(condition)]
    safe = [condition for condition in conditions if condition not in failing]
    cheap = conjunction([condition for condition in safe if predicate_cost(condition) < _TEXT])
    expensive = [condition for condition in safe if predicate_cost(condition) >= _TEXT]
    expensive.sort(key=lambda condition: (selectivity(condition, distinct) - 1) / predicate_cost(condition))
    last = conjunction(failing)
    return [*([] if cheap is None else [cheap]), *expensive, *([] if last is None else [last])]
