"""Answers whose rows say from the beginning when they will end: what a kept answer is spread over its window by."""

from __future__ import annotations

import pytest

from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.types import BIGINT, Field
from sash.planning import plan_query

SCHEMA = (Field("ts", BIGINT), Field("k", BIGINT), Field("v", BIGINT))
CATALOG = Catalog({name: StreamEntry(name, SCHEMA, "ts") for name in ("s", "r")})
JOIN = "SELECT s.k, s.v, r.v AS w FROM s [RANGE 5 SECONDS] JOIN r [RANGE 3 SECONDS] ON s.k = r.k"


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (JOIN, True),
        ("SELECT k FROM s [RANGE 5 SECONDS] WHERE v > 1 UNION ALL SELECT k FROM r [RANGE 3 SECONDS]", True),
        ("SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k", False),
        ("SELECT DISTINCT k FROM s [RANGE 5 SECONDS]", False),
        ("SELECT k FROM s [ROWS 5]", False),
        ("SELECT k FROM s [RANGE UNBOUNDED]", False),
    ],
)
def test_ends_are_told_where_they_are_known_for_certain(sql: str, told: bool) -> None:
    plain = plan_query(sql, CATALOG, shards=2)
    planned = plain.telling_ends(2)
    assert planned.tells_ends is told
    assert not plain.tells_ends
    assert [field.name for field in planned.output] == [
        *(field.name for field in plain.schema),
        *(["_ends"] if told else []),
    ]
