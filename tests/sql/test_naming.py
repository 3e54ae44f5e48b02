"""Output columns without an alias have the names that Spark gives them."""

from __future__ import annotations

import pytest

from sash.testing import replay
from tests.sql.spark_answers import SCHEMAS, TABLES


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("-k", "(- k)"),
        ("-k + 1", "((- k) + 1)"),
        ("-1", "-1"),
        ("- k * 2", "((- k) * 2)"),
        ("-(k)", "(- k)"),
        ("-(k + 1)", "(- (k + 1))"),
        ("ABS(-k)", "abs((- k))"),
        ("- -k", "(- (- k))"),
        ("NOT b", "(NOT b)"),
        ("NOT k = 1", "(NOT (k = 1))"),
        ("b AND NOT b", "(b AND (NOT b))"),
        ("g LIKE 'a%'", "g LIKE a%"),
        ("g NOT LIKE 'a%'", "(NOT g LIKE a%)"),
        ("k BETWEEN 1 AND 2", "between(k, 1, 2)"),
        ("k NOT BETWEEN 1 AND 2", "(NOT between(k, 1, 2))"),
        ("k IN (1, 2)", "(k IN (1, 2))"),
        ("k NOT IN (1, 2)", "(NOT (k IN (1, 2)))"),
        ("v IS NULL", "(v IS NULL)"),
        ("v IS NOT NULL", "(v IS NOT NULL)"),
        ("g || 'x'", "concat(g, x)"),
        ("g || 'x' || k", "concat(concat(g, x), k)"),
        ("-1::STRING", "CAST(-1 AS STRING)"),
        ("CASE WHEN k = 1 THEN 'a' ELSE 'b' END", "CASE WHEN (k = 1) THEN a ELSE b END"),
        ("COALESCE(v, 0)", "coalesce(v, 0)"),
        ("SUM(-k)", "sum((- k))"),
        ("k % 2", "(k % 2)"),
        ("k DIV 2", "(k div 2)"),
        ("k & 1", "(k & 1)"),
        ("k | 1 ^ 2", "(k | (1 ^ 2))"),
        ("k <=> 1", "(k <=> 1)"),
        ("k != 1", "(NOT (k = 1))"),
        ("k <> 1", "(NOT (k = 1))"),
        ("1.5", "1.5"),
        ("'x'", "x"),
        ("NULL", "NULL"),
        ("TRUE", "true"),
        ("-1.5", "-1.5"),
        ("COUNT(DISTINCT k)", "count(DISTINCT k)"),
        ("COUNT(*)", "count(1)"),
        ("COUNT(1)", "count(1)"),
        ("SUM(v) FILTER (WHERE k = 1)", "sum(v) FILTER (WHERE (k = 1))"),
        ("FIRST(v)", "first(v)"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY v)"),
        ("s.k + s.v", "(k + v)"),
        ("g RLIKE 'a'", "RLIKE(g, a)"),
        ("X'1F'", "X'1F'"),
        ("MAX(k) + 1", "(max(k) + 1)"),
        ("k = 1 OR k = 2 AND b", "((k = 1) OR ((k = 2) AND b))"),
    ],
)
def test_name(expression: str, name: str) -> None:
    result = replay(f"SELECT {expression} FROM s WINDOW 1 HOUR", TABLES, schemas=SCHEMAS, unit="s", until=2)
    assert [list(row) for row in result.at(2)[:1]] == [[name]]
