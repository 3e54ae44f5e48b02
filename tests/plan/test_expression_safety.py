from __future__ import annotations

import pytest

from sash.plan.expression_safety import may_fail, respects_equality
from sash.plan.expressions import Call, Case, Cast, Column, Expression, Literal, SparkFunction
from sash.plan.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING

I, D, S = Column(0, "i", INT), Column(1, "d", DOUBLE), Column(2, "s", STRING)
ONE = Literal(1, INT)


def compare(left: Expression) -> Call:
    return Call("gt", (left, ONE), BOOLEAN)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (compare(I), False),
        (compare(Call("divide", (I, I), DOUBLE)), True),
        (compare(Call("add", (I, ONE), INT)), True),
        (compare(Call("add", (D, D), DOUBLE)), False),
        (compare(Cast(S, INT)), True),
        (compare(Cast(S, INT, lenient=True)), False),
        (compare(Cast(I, BIGINT)), False),
        (compare(Cast(I, DOUBLE)), False),
        (Call("eq", (Cast(I, STRING), S), BOOLEAN), False),
        (Call("like", (S, Literal("a%", STRING)), BOOLEAN), False),
        (Call("like", (S, S), BOOLEAN), True),
        (Case(((compare(I), Cast(S, INT)),), None, INT), True),
        (SparkFunction("sha({0})", (S,), STRING), True),
        (Call("not_in_the_list", (I,), INT), True),
    ],
)
def test_what_may_fail(expression: Expression, expected: bool) -> None:
    assert may_fail(expression) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (compare(Call("divide", (I, I), DOUBLE)), True),
        (compare(D), True),
        (compare(Call("divide", (ONE, D), DOUBLE)), False),
        (Call("eq", (Cast(D, STRING), S), BOOLEAN), False),
    ],
)
def test_what_tells_zero_from_minus_zero(expression: Expression, expected: bool) -> None:
    assert respects_equality(expression) is expected
