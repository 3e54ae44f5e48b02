"""Spark's precedence, whatever the version of the parser does; the answers are in tests/sql/spark_answers."""

from __future__ import annotations

import pytest
from sqlglot import exp

from sash.sql.binder import Binder
from sash.sql.dialect import parse_statement
from sash.sql.source import SqlText
from tests.sql.plans import catalog, lines, tree


def test_intersect_binds_more_tightly_in_a_chain_that_is_nested_to_the_left() -> None:
    union = parse_statement(SqlText("SELECT item FROM sales UNION ALL SELECT item FROM clicks")).query
    last = parse_statement(SqlText("SELECT item FROM clicks [ROWS 1]")).query
    chain = exp.Intersect(this=union, expression=last, distinct=True)
    grouped = tree(
        "SELECT item FROM sales UNION ALL (SELECT item FROM clicks INTERSECT SELECT item FROM clicks [ROWS 1])"
    )
    assert lines(Binder(SqlText(""), catalog(), None).query(chain)) == grouped


@pytest.mark.parametrize(
    ("written", "grouped"),
    [
        ("item | 1 ^ 2 & 3", "item | (1 ^ (2 & 3))"),
        ("item & 1 ^ 2 | 3", "((item & 1) ^ 2) | 3"),
        ("item & 1 + 2", "item & (1 + 2)"),
        ("name || qty + 1", "(name || qty) + 1"),
        ("qty + 1 || name", "(qty + 1) || name"),
        ("-item * 2", "(-item) * 2"),
        ("name NOT LIKE 'a' || 'b'", "NOT (name LIKE ('a' || 'b'))"),
        ("name NOT LIKE 'a!%' ESCAPE '!'", "NOT (name LIKE 'a!%' ESCAPE '!')"),
    ],
)
def test_operators(written: str, grouped: str) -> None:
    assert tree(f"SELECT {written} AS y FROM sales") == tree(f"SELECT {grouped} AS y FROM sales")


def test_a_sign_is_part_of_the_number_that_a_double_colon_casts() -> None:
    assert tree("SELECT -1::STRING AS y FROM sales") == tree("SELECT CAST(-1 AS STRING) AS y FROM sales")
    assert tree("SELECT -item::BIGINT AS y FROM sales") == tree("SELECT -(CAST(item AS BIGINT)) AS y FROM sales")
