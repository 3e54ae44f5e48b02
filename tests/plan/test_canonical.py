"""Canonical forms: equal for plans that differ in names and order alone, unequal for all others."""

from __future__ import annotations

import pytest

from sash.plan.canonical import canonical
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.nodes import Node
from sash.rows import parse_schema
from sash.sql import parse

SCHEMA = parse_schema("ts BIGINT, k BIGINT, v BIGINT, x DOUBLE")
CATALOG = Catalog(
    {name: StreamEntry(name, SCHEMA, "ts") for name in ("s", "r")}, {"t": RelationEntry("t", parse_schema("k BIGINT"))}
)


def form(sql: str) -> Node:
    return canonical(parse(f"{sql} WINDOW 5 SECONDS", CATALOG))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT k FROM s", "SELECT a.k AS z FROM s AS a"),
        ("SELECT k, SUM(v) AS n FROM s GROUP BY k", "SELECT k AS q, SUM(v) AS m FROM s GROUP BY k"),
        ("SELECT k FROM s WHERE k > 1 AND v = 2", "SELECT k FROM s WHERE 2 = v AND k > 1"),
        ("SELECT k FROM s WHERE k > 1 AND v = 2", "SELECT k FROM s WHERE k > 1 AND v = 2 AND k > 1"),
        ("SELECT DISTINCT k AS a FROM s", "SELECT DISTINCT k AS b FROM s"),
        (
            "SELECT a.v FROM s AS a JOIN r AS b ON a.k = b.k AND a.v = b.v AND a.x < b.x",
            "SELECT c.v FROM s AS c JOIN r AS d ON c.x < d.x AND c.v = d.v AND c.k = d.k",
        ),
        ("SELECT k FROM s EXCEPT SELECT k FROM r", "SELECT k AS a FROM s EXCEPT SELECT k AS b FROM r"),
    ],
)
def test_names_and_order_do_not_count(one: str, other: str) -> None:
    assert form(one) == form(other)
    assert hash(form(one)) == hash(form(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT k FROM s", "SELECT v FROM s"),
        ("SELECT k FROM s", "SELECT k FROM r"),
        ("SELECT k, v FROM s", "SELECT v, k FROM s"),
        ("SELECT k FROM s WHERE k > 1", "SELECT k FROM s WHERE k > 2"),
        ("SELECT k FROM s WHERE k > v", "SELECT k FROM s WHERE v > k"),
        ("SELECT k - v AS d FROM s", "SELECT v - k AS d FROM s"),
        ("SELECT x * 0.0D AS z FROM s", "SELECT x * -0.0D AS z FROM s"),
        ("SELECT SUM(v) AS n FROM s", "SELECT SUM(DISTINCT v) AS n FROM s"),
        ("SELECT k FROM s EXCEPT SELECT k FROM r", "SELECT k FROM r EXCEPT SELECT k FROM s"),
        ("SELECT k FROM s ORDER BY k LIMIT 2", "SELECT k FROM s ORDER BY k DESC LIMIT 2"),
        ("SELECT a.k FROM s AS a JOIN t AS b ON a.k = b.k", "SELECT a.k FROM s AS a LEFT JOIN t AS b ON a.k = b.k"),
        ("SELECT k FROM s WHERE v <> 0 AND k / v > 2", "SELECT k FROM s WHERE k / v > 2 AND v <> 0"),
    ],
)
def test_what_changes_the_answer_or_a_failure_counts(one: str, other: str) -> None:
    assert form(one) != form(other)
