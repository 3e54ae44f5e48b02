"""The number of partitions of calendar buffers: from rate and window, or as the user says; never in the answer."""

from __future__ import annotations

import pytest

from sash.errors import StrategyError
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.plan.statistics import Statistics
from sash.planning import plan_query
from sash.rows import parse_schema
from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle

SCHEMA = parse_schema("ts BIGINT, k BIGINT, v BIGINT")
UNION = (
    "SELECT k, COUNT(*) AS n FROM (SELECT k FROM s [RANGE {seconds} SECONDS] UNION ALL SELECT k FROM s [RANGE 1 SECOND]) AS t "
    "GROUP BY k"
)


def explained(sql: str, rate: float, partitions: int | None = None) -> str:
    catalog = Catalog({"s": StreamEntry("s", SCHEMA, "ts", statistics=Statistics(rate=rate))})
    return plan_query(sql, catalog, options=Options(partitions=partitions)).explain()


@pytest.mark.parametrize(
    ("rate", "seconds", "partitions"),
    [(100, 31, "100"), (1_000, 31, "1,000"), (1_000, 63, "2,000"), (1, 10, "16"), (1e6, 3_600, "65,536")],
    ids=["rows", "rate", "window", "at least", "at most"],
)
def test_the_planner_goes_by_rate_and_window(rate: float, seconds: int, partitions: str) -> None:
    """Both windows together hold rate * (seconds + 1) rows, of which 32 share a partition."""
    assert f"[calendar of {partitions}]" in explained(UNION.format(seconds=seconds), rate)


def test_the_user_may_say_otherwise() -> None:
    assert "[calendar of 7]" in explained(UNION.format(seconds=31), 1_000, 7)


def test_distinct_goes_by_the_rows_it_gives() -> None:
    sql = "SELECT COUNT(*) AS n FROM (SELECT DISTINCT k FROM s [RANGE 100 SECONDS]) AS t"
    assert "Distinct [calendar of 31]" in explained(sql, 1_000)


@pytest.mark.parametrize("partitions", [1, 2, 3, 50])
@pytest.mark.parametrize("case", ["distinct_over_join", "join_over_anti", "join_over_except", "join_over_distinct"])
def test_oracle_with_any_number(case: str, partitions: int) -> None:
    assert_oracle(BY_NAME[case], shards=1, batch=3, partitions=partitions)


def test_there_is_at_least_one() -> None:
    with pytest.raises(StrategyError, match="partitions must be at least 1, not 0"):
        Options(partitions=0)
