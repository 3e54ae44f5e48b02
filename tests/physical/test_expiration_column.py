"""Answers with the expiration times of their rows, by which a kept answer is spread over its window."""

from __future__ import annotations

import pytest

from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.types import BIGINT, Field
from sash.planning import plan_query

SCHEMA = (Field("ts", BIGINT), Field("k", BIGINT), Field("v", BIGINT))
CATALOG = Catalog({name: StreamEntry(name, SCHEMA, "ts") for name in ("s", "r")})
JOIN = "SELECT s.k, s.v, r.v AS w FROM s [RANGE 5 SECONDS] JOIN r [RANGE 3 SECONDS] ON s.k = r.k"


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        (JOIN, True),
        ("SELECT k FROM s [RANGE 5 SECONDS] WHERE v > 1 UNION ALL SELECT k FROM r [RANGE 3 SECONDS]", True),
        ("SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k", False),
        ("SELECT DISTINCT k FROM s [RANGE 5 SECONDS]", False),
        ("SELECT k FROM s [ROWS 5]", False),
        ("SELECT k FROM s [RANGE UNBOUNDED]", False),
    ],
)
def test_expiration_times_are_there_where_they_are_certain(sql: str, known: bool) -> None:
    plain = plan_query(sql, CATALOG, shards=2)
    planned = plain.with_expiration(2)
    assert planned.has_expiration is known
    assert not plain.has_expiration
    assert [field.name for field in planned.output] == [
        *(field.name for field in plain.schema),
        *(["_ends"] if known else []),
    ]


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        ("SELECT s.k, s.v + 1 AS w FROM s [RANGE 5 SECONDS] LEFT ANTI JOIN r [RANGE 3 SECONDS] ON s.k = r.k", True),
        ("SELECT k FROM s [RANGE 5 SECONDS] WHERE k IN (SELECT k FROM r [RANGE 3 SECONDS])", True),
        ("SELECT k FROM s [RANGE 5 SECONDS] EXCEPT ALL SELECT k FROM r [RANGE 3 SECONDS]", True),
        (
            "SELECT k FROM s [RANGE 5 SECONDS] UNION ALL SELECT k FROM s [RANGE 2 SECONDS] EXCEPT ALL SELECT k FROM r [NOW]",
            False,
        ),
        ("SELECT k FROM s [RANGE 5 SECONDS] EXCEPT SELECT k FROM r [RANGE 3 SECONDS]", False),
        ("SELECT s.k FROM s [ROWS 5] LEFT ANTI JOIN r [RANGE 3 SECONDS] ON s.k = r.k", False),
    ],
)
def test_rows_of_a_negation_have_expiration_times_where_they_may_end_before(sql: str, known: bool) -> None:
    """Paper 5, 5.3.2: kept results of a negation are by calendar, and only premature ends are retracted."""
    plain = plan_query(sql, CATALOG, shards=2)
    assert not plain.with_expiration(2).has_expiration
    assert plain.with_expiration(2, premature=True).has_expiration is known
    assert plain.with_expiration(2, premature=True).with_shards(3).has_expiration is known
