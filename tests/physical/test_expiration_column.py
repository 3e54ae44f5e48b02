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
