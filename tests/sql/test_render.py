from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from sash.plan.expressions import Call, Case, Cast, Column, Expression, Literal, SparkFunction
from sash.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
)
from sash.sql.render import to_spark_sql

A, B = Column(0, "a", INT), Column(1, "b", STRING)
NOON = datetime(2020, 1, 31, 12, 0, 0, 5)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (A, "x.a"),
        (Literal(None, NULL), "NULL"),
        (Literal(None, INT), "CAST(NULL AS INT)"),
        (Literal(True, BOOLEAN), "TRUE"),
        (Literal(7, INT), "7"),
        (Literal(-(2**31), INT), "CAST('-2147483648' AS INT)"),
        (Literal(7, BIGINT), "CAST('7' AS BIGINT)"),
        (Literal(7, TINYINT), "CAST('7' AS TINYINT)"),
        (Literal(0.1, DOUBLE), "CAST('0.1' AS DOUBLE)"),
        (Literal(float("nan"), DOUBLE), "CAST('nan' AS DOUBLE)"),
        (Literal(float("-inf"), FLOAT), "CAST('-inf' AS FLOAT)"),
        (Literal(Decimal("1.50"), pa.decimal128(5, 2)), "CAST('1.50' AS DECIMAL(5,2))"),
        (Literal("it's\n\\", STRING), r"'it\'s\n\\'"),
        (Literal(b"\x1f\x00", BINARY), "X'1F00'"),
        (Literal(date(2020, 1, 31), DATE), "CAST('2020-01-31' AS DATE)"),
        (Literal(NOON.replace(tzinfo=UTC), TIMESTAMP), "CAST('2020-01-31 12:00:00.000005Z' AS TIMESTAMP)"),
        (Literal(NOON, TIMESTAMP_NTZ), "CAST('2020-01-31 12:00:00.000005' AS TIMESTAMP_NTZ)"),
        (Call("multiply", (Call("add", (A, A), INT), A), INT), "((x.a + x.a) * x.a)"),
        (Call("negate", (A,), INT), "(- x.a)"),
        (Call("is_null", (A,), BOOLEAN), "(x.a IS NULL)"),
        (Call("not", (Call("in", (A, Literal(1, INT), Literal(2, INT)), BOOLEAN),), BOOLEAN), "(NOT (x.a IN (1, 2)))"),
        (Call("like", (B, Literal("a%", STRING)), BOOLEAN), "(b LIKE 'a%')"),
        (Call("ltrim", (B, Literal("a", STRING)), STRING), "trim(LEADING 'a' FROM b)"),
        (Call("trim", (B,), STRING), "trim(b)"),
        (Call("starts_with", (B, B), BOOLEAN), "startswith(b, b)"),
        (Cast(B, INT), "CAST(b AS INT)"),
        (Cast(B, INT, lenient=True), "TRY_CAST(b AS INT)"),
        (Case(((Literal(True, BOOLEAN), A),), None, INT), "(CASE WHEN TRUE THEN x.a END)"),
        (Case(((Literal(True, BOOLEAN), A),), Literal(1, INT), INT), "(CASE WHEN TRUE THEN x.a ELSE 1 END)"),
        (SparkFunction("map('{{', {0})[{1}]", (A, B), INT), "map('{', x.a)[b]"),
    ],
)
def test_spark_sql_of_an_expression(expression: Expression, text: str) -> None:
    assert to_spark_sql(expression, ["x.a", "b"]) == text
