"""What predicates are worth to test, and the order in which they are tested."""

from __future__ import annotations

import pyarrow as pa

from sash.plan.expressions import Call, Case, Cast, Column, Expression, Literal
from sash.plan.predicate_cost import order_predicates, predicate_cost

A, B = Column(0, "a", pa.int64()), Column(1, "b", pa.int64())
N, O = Column(2, "n", pa.string()), Column(3, "o", pa.string())
COUNTS = [10.0, 10.0, 500.0, 4.0]


def of(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments, pa.bool_())


LESS = of("lt", A, B)
SAME_TEXT = of("eq", N, Call("upper", (O,), pa.string()))
LIKE = of("like", N, Literal("%x%", pa.string()))
FAILING = of("gt", Call("divide", (A, B), pa.int64()), Literal(1, pa.int64()))


def test_text_is_dearer_than_numbers_and_patterns_are_dearest() -> None:
    chosen = Case(((LESS, N),), O, pa.string())
    assert predicate_cost(LESS) < predicate_cost(of("lt", chosen, N)) < predicate_cost(LIKE)
    assert predicate_cost(of("lt", Cast(N, pa.int64()), B)) > predicate_cost(LESS)
    assert predicate_cost(of("and", LESS, LIKE)) > predicate_cost(LIKE)


def test_cheap_conditions_come_first_and_what_may_fail_last() -> None:
    other = of("ne", A, B)
    assert order_predicates([FAILING, LIKE, LESS, SAME_TEXT, other], COUNTS) == [
        of("and", LESS, other),
        SAME_TEXT,
        LIKE,
        FAILING,
    ]


def test_of_dear_conditions_the_one_that_drops_most_for_its_expense_comes_first() -> None:
    """One value of 500 passes the equality, all but one of four the inequality."""
    unequal = of("ne", O, Literal("x", pa.string()))
    equal = of("eq", N, Literal("x", pa.string()))
    assert order_predicates([unequal, equal], COUNTS) == [equal, unequal]
    assert order_predicates([], COUNTS) == []
