from __future__ import annotations

from datetime import date, datetime

import pytest

from sash.plan.describe import describe, describe_aggregate
from sash.plan.expressions import AggregateCall, Call, Case, Cast, Column, Expression, Literal, SparkFunction
from sash.plan.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP_NTZ

A, B = Column(0, "a", INT), Column(1, "b", STRING)
ONE = Literal(1, INT)


def call(name: str, *arguments: Expression) -> Call:
    return Call(name, arguments, INT)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (call("gt", A, ONE), "a > 1"),
        (call("upper", B), "upper(b)"),
        (call("multiply", call("add", A, ONE), A), "(a + 1) * a"),
        (call("add", call("multiply", A, ONE), A), "a * 1 + a"),
        (call("subtract", A, call("subtract", A, ONE)), "a - (a - 1)"),
        (call("subtract", call("subtract", A, ONE), A), "a - 1 - a"),
        (call("and", call("or", A, A), call("not", call("eq", A, ONE))), "(a OR a) AND NOT a = 1"),
        (call("not", call("and", A, A)), "NOT (a AND a)"),
        (call("negate", call("add", A, ONE)), "-(a + 1)"),
        (call("is_null", call("eq", A, A)), "(a = a) IS NULL"),
        (call("in", B, Literal("x'", STRING), Literal(None, NULL)), "b IN ('x''', NULL)"),
        (Cast(A, BIGINT), "cast(a AS BIGINT)"),
        (Cast(A, BIGINT, lenient=True), "try_cast(a AS BIGINT)"),
        (Case(((call("eq", A, ONE), B),), Literal("x", STRING), STRING), "CASE WHEN a = 1 THEN b ELSE 'x' END"),
        (SparkFunction("soundex({0})", (B,), STRING), "soundex(b)"),
        (Literal(True, BOOLEAN), "TRUE"),
        (Literal(b"\x1f", BINARY), "X'1F'"),
        (Literal(date(2020, 1, 31), DATE), "DATE '2020-01-31'"),
        (Literal(datetime(2020, 1, 31, 12), TIMESTAMP_NTZ), "TIMESTAMP '2020-01-31 12:00:00'"),
        (Column(3, "", INT), "#3"),
    ],
)
def test_an_expression_as_a_person_writes_it(expression: Expression, text: str) -> None:
    assert describe(expression) == text


@pytest.mark.parametrize(
    ("aggregate", "text"),
    [
        (AggregateCall("count_star", (), BIGINT), "count(*)"),
        (AggregateCall("count", (A,), BIGINT, distinct=True), "count(DISTINCT a)"),
        (AggregateCall("percentile", (A,), DOUBLE, parameter=0.25), "percentile(a, 0.25)"),
        (AggregateCall("min_by", (B, A), STRING), "min_by(b, a)"),
    ],
)
def test_an_aggregate_as_a_person_writes_it(aggregate: AggregateCall, text: str) -> None:
    assert describe_aggregate(aggregate) == text
