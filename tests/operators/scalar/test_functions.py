"""What fails in each function, and says what to do about it."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from sash.errors import EvaluationError
from sash.operators.scalar import evaluate
from sash.plan.expressions import Call, Expression
from sash.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, TINYINT
from tests.operators.scalar.build import call, lit

BIG = pa.decimal128(38, 0)
NINES = Decimal("9" * 38)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (call("add", INT, lit(2**31 - 1, INT), lit(1, INT)), "add.*INT.*wider"),
        (call("subtract", BIGINT, lit(-(2**63), BIGINT), lit(1, BIGINT)), "subtract.*BIGINT"),
        (call("multiply", TINYINT, lit(100, TINYINT), lit(2, TINYINT)), "multiply.*TINYINT"),
        (call("negate", TINYINT, lit(-128, TINYINT)), "negate"),
        (call("abs", INT, lit(-(2**31), INT)), "abs"),
        (call("divide", DOUBLE, 1.0, 0.0), "division by zero.*NULLIF"),
        (call("divide", DOUBLE, 1.0, -0.0), "division by zero"),
        (call("modulo", DOUBLE, 1.0, 0.0), "division by zero"),
        (call("modulo", INT, lit(1, INT), lit(0, INT)), "division by zero"),
        (call("pmod", INT, lit(1, INT), lit(0, INT)), "division by zero"),
        (call("int_divide", BIGINT, lit(1, BIGINT), lit(0, BIGINT)), "division by zero"),
        (call("int_divide", BIGINT, lit(-(2**63), BIGINT), lit(-1, BIGINT)), "int_divide"),
        (call("divide", pa.decimal128(38, 6), lit(NINES, BIG), lit(Decimal(0), BIG)), "division by zero"),
        (call("modulo", BIG, lit(NINES, BIG), lit(Decimal(0), BIG)), "division by zero"),
        (call("add", BIG, lit(NINES, BIG), lit(NINES, BIG)), r"add.*DECIMAL\(38,0\)"),
        (call("multiply", BIG, lit(NINES, BIG), lit(NINES, BIG)), "multiply"),
        (call("ceil", BIGINT, 1e30), "ceil"),
        (call("round", TINYINT, lit(127, TINYINT), lit(-1, INT)), "round"),
        (call("timestamp_millis", TIMESTAMP, lit(2**63 - 1, BIGINT)), "timestamp_millis"),
        (call("date_add", DATE, lit(datetime.date(2020, 1, 1)), lit(2**31 - 1, INT)), "date_add"),
        (call("like", BOOLEAN, "ab", "a\\b"), "backslash"),
        (call("like", BOOLEAN, "ab", "ab\\"), "backslash"),
        (call("rlike", BOOLEAN, "ab", "("), "regular expression"),
        (call("split_part", STRING, "a,b", ",", lit(0, INT)), "other than 0"),
        (call("to_date", DATE, "never"), "TRY_CAST"),
        (call("upper", STRING, lit(1, INT)), "does not take"),
    ],
)
def test_fails_with_advice(expression: Call, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        evaluate(expression, [], 1)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (call("divide", DOUBLE, lit(None, DOUBLE), 0.0), None),
        (call("modulo", BIGINT, lit(-(2**63), BIGINT), lit(-1, BIGINT)), 0),
        (call("ceil", BIGINT, float("nan")), 0),
        (call("int_divide", BIGINT, 7.5, -2.0), -3),
        (call("round", DOUBLE, 2.5), 3.0),
        (call("round", BIGINT, lit(2**62, BIGINT), lit(-30, INT)), 0),
        (call("greatest", BIGINT, lit(None, BIGINT), lit(None, BIGINT)), None),
        (call("concat_ws", STRING, ","), ""),
        (call("concat_ws", STRING, ",", lit(None, STRING)), ""),
        (call("repeat", STRING, "ab", lit(-1, INT)), ""),
        (call("lpad", STRING, "abc", lit(5, INT)), "  abc"),
        (call("substring", STRING, "abcdef", lit(3, INT)), "cdef"),
        (call("sha2", STRING, "abc", lit(1, INT)), None),
        (call("unix_timestamp", BIGINT, lit(datetime.date(1970, 1, 2))), 86400),
        (call("hour", INT, lit(datetime.date(1970, 1, 2))), 0),
        (call("timestamp_seconds", TIMESTAMP, float("nan")), None),
    ],
)
def test_edges(expression: Call, value: object) -> None:
    assert evaluate(expression, [], 2).to_pylist() == [value, value]


def test_decimals_wider_than_any_kernel() -> None:
    tiny, huge = pa.decimal128(38, 38), pa.decimal128(38, 0)
    a, b = lit(Decimal("0." + "3" * 38), tiny), lit(Decimal("1" + "0" * 36 + "7"), huge)
    assert _one(call("add", pa.decimal128(38, 0), b, a)) == Decimal("1" + "0" * 36 + "7")
    assert _one(call("divide", pa.decimal128(38, 6), b, b)) == Decimal("1.000000")
    assert _one(call("int_divide", BIGINT, b, b)) == 1
    remainder = (10**37 + 7) * 10**38 % int("3" * 38)
    assert _one(call("modulo", pa.decimal128(38, 38), b, a)) == Decimal(f"{remainder}E-38")


def _one(expression: Expression) -> object:
    (value,) = evaluate(expression, [], 1).to_pylist()
    return value
