"""Joins that retract their results for the operators above them."""

from __future__ import annotations

import pytest

from sash.physical.nodes import Join, operations
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.plan.types import BIGINT, Field
from sash.planning import plan_query

COLUMNS = tuple(Field(name, BIGINT) for name in ("ts", "k", "v"))
CATALOG = Catalog({name: StreamEntry(name, COLUMNS, "ts") for name in "srt"})
JOIN = "FROM s [RANGE 5 SECONDS] JOIN r [RANGE 9 SECONDS] ON s.k = r.k"


def ends(sql: str, **options: object) -> list[str]:
    unpushed = frozenset({"push_distinct_below_join"})
    plan = plan_query(sql, CATALOG, disable=unpushed, options=Options(**options)).physical  # type: ignore[arg-type]
    return [node.expiry for stage in plan.stages for node in operations(stage.root) if isinstance(node, Join)]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT s.k, COUNT(*) AS n, SUM(r.v) AS total {JOIN} GROUP BY s.k",
        f"SELECT s.k, COUNT(DISTINCT r.v) AS n, STDDEV(s.v) AS d {JOIN} GROUP BY s.k",
        f"SELECT s.k {JOIN} EXCEPT ALL SELECT k FROM t [RANGE 5 SECONDS]",
        f"SELECT k FROM t [RANGE 5 SECONDS] INTERSECT SELECT s.k {JOIN}",
    ],
)
def test_counts_and_sums_get_retractions(sql: str) -> None:
    assert ends(sql) == ["explicit"]
    assert ends(sql, strategy="direct") == ["calendar"]


@pytest.mark.parametrize(
    ("reason", "sql"),
    [
        ("MAX finds a row by its position", f"SELECT s.k, COUNT(*) AS n, MAX(r.v) AS top {JOIN} GROUP BY s.k"),
        ("delta-star reads stamps", f"SELECT DISTINCT s.k, r.v {JOIN}"),
        ("another stage reads it", f"SELECT r.v, COUNT(*) AS n {JOIN} GROUP BY r.v"),
        ("partial aggregates are read by another stage", f"SELECT COUNT(*) AS n {JOIN}"),
        (
            "pairs that fail the condition are not found again",
            f"SELECT s.k, COUNT(*) AS n {JOIN} AND s.v < r.v GROUP BY s.k",
        ),
    ],
)
def test_others_get_stamped_rows(reason: str, sql: str) -> None:
    assert ends(sql) == ["calendar"], reason


def test_a_join_with_lazy_expiration_does_not_retract() -> None:
    sql = f"SELECT s.k, COUNT(*) AS n {JOIN} GROUP BY s.k"
    assert ends(sql, purge=1_000_000) == ["calendar"]
    assert ends(sql, purge=0) == ["explicit"]


def test_a_join_with_two_readers_is_not_made_twice() -> None:
    counted = f"SELECT s.k, COUNT(*) AS n {JOIN} GROUP BY s.k"
    both = f"SELECT k, n FROM ({counted}) AS a UNION ALL SELECT s.k, MAX(s.k) AS n {JOIN} GROUP BY s.k"
    assert ends(both) == ["calendar"]
