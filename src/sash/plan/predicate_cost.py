"""How dear a predicate is to test, in comparisons of two numbers: a guess from the functions that it calls.

What reads or makes text is dearer than arithmetic, a pattern dearer still.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Call, Case, Column, Expression, Literal, SparkFunction, children, conjunction, walk
from sash.plan.selectivity import selectivity

_TEXT = 8.0
_PATTERN = 40.0
_PATTERNS = frozenset({"like", "ilike", "rlike", "md5", "sha2"})


def predicate_cost(predicate: Expression) -> float:
    """How many comparisons of numbers a test of the predicate is worth.

    >>> one, two = Column(0, "a", pa.int64()), Column(1, "b", pa.int64())
    >>> name, other = Column(2, "n", pa.string()), Column(3, "o", pa.string())
    >>> less = Call("lt", (one, two), pa.bool_())
    >>> [predicate_cost(less), predicate_cost(Call("lt", (name, other), pa.bool_())), predicate_cost(Call("like", (name, other), pa.bool_()))]
    [1.0, 8.0, 40.0]
    """
    return sum(_of(part) for part in walk(predicate))


def _of(part: Expression) -> float:
    match part:
        case Column() | Literal():
            return 0.0
        case Case():
            return float(len(part.branches))
        case SparkFunction():
            return _PATTERN
        case Call() if part.function in _PATTERNS:
            return _PATTERN
        case _:
            read = [part.dtype, *(child.dtype for child in children(part))]
            return _TEXT if any(pa.types.is_string(dtype) or pa.types.is_binary(dtype) for dtype in read) else 1.0


def order_predicates(conditions: Sequence[Expression], distinct: Sequence[float]) -> list[Expression]:
    """The conditions as predicates to be tested one after the other, each on the rows that those before it let pass.

    Cheap ones go together and first; then the dear ones, the one that drops most rows for its expense first. What may
    fail on some row comes last and in its order: it must not see rows that it did not see.
    """
    failing = [condition for condition in conditions if may_fail(condition)]
    safe = [condition for condition in conditions if condition not in failing]
    cheap = conjunction([condition for condition in safe if predicate_cost(condition) < _TEXT])
    dear = [condition for condition in safe if predicate_cost(condition) >= _TEXT]
    dear.sort(key=lambda condition: (selectivity(condition, distinct) - 1) / predicate_cost(condition))
    last = conjunction(failing)
    return [*([] if cheap is None else [cheap]), *dear, *([] if last is None else [last])]
