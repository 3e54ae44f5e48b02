"""NOW(): what it is compiled to, and where it is refused."""

from __future__ import annotations

import pytest

from sash.errors import UnsupportedSqlError
from sash.plan.catalog import Catalog
from sash.plan.nodes import Lifetime, Range, Stream, walk
from sash.plan.patterns import Pattern, pattern
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.sql import parse
from sash.time import HOUR, MINUTE


def catalog() -> Catalog:
    made = Catalog()
    for name in ("s", "r"):
        made.add_stream(name, parse_schema("ts TIMESTAMP, k INT, at TIMESTAMP, d DATE"), "ts")
    made.add_relation("t", parse_schema("k INT, at TIMESTAMP"))
    return made


@pytest.mark.parametrize(
    ("written", "length"),
    [
        ("s WHERE ts > NOW() - INTERVAL 1 HOUR", HOUR),
        ("s WHERE ts >= current_timestamp() - INTERVAL 1 HOUR", HOUR + 1),
        ("s [RANGE 5 MINUTES] WHERE ts > NOW() - INTERVAL 1 HOUR", 5 * MINUTE),
        ("s [RANGE UNBOUNDED] WHERE CURRENT_TIMESTAMP < ts + INTERVAL 1 HOUR AND ts <= NOW()", HOUR),
        ("(SELECT k, ts AS x FROM s) WHERE x > NOW() - INTERVAL 1 HOUR", HOUR),
    ],
)
def test_the_time_of_a_stream_makes_a_window(written: str, length: int) -> None:
    plan = parse(f"SELECT k FROM {written}", catalog())
    assert not any(isinstance(node, Lifetime) for node in walk(plan))
    assert [node.window for node in walk(plan) if isinstance(node, Stream)] == [Range(length)]


def test_joins_of_streams_without_windows_are_bounded_by_it() -> None:
    sql = "SELECT s.k FROM s JOIN r ON s.k = r.k WHERE s.ts > NOW() - INTERVAL 1 HOUR AND r.ts > NOW() - INTERVAL 5 MINUTES"
    planned = plan_query(sql, catalog())
    windows = [node.window for node in walk(planned.optimized) if isinstance(node, Stream)]
    assert windows == [Range(HOUR), Range(5 * MINUTE)]


def test_other_columns_narrow_the_time_in_which_rows_are_valid() -> None:
    planned = plan_query("SELECT k FROM s WHERE at > NOW() AND d <= CURRENT_DATE", catalog())
    assert pattern(planned.optimized) == Pattern.WK
    assert "Lifetime FROM cast(d AS TIMESTAMP)" in planned.explain()
    assert "Lifetime UNTIL at" in planned.explain()


REFUSED = {
    "SELECT k, NOW() AS n FROM s": "NOW() in SELECT",
    "SELECT k FROM s GROUP BY k HAVING MAX(ts) > CURRENT_TIMESTAMP": "NOW() in HAVING",
    "SELECT s.k FROM s JOIN r ON s.k = r.k AND s.at > NOW()": "NOW() in ON",
    "SELECT k FROM s ORDER BY CURRENT_DATE LIMIT 1": "CURRENT_DATE in ORDER BY",
    "SELECT SUM(unix_micros(NOW())) AS t FROM s": "NOW() in the argument of an aggregate",
    "SELECT k FROM s WHERE k = 1 OR ts > NOW()": "such a condition on NOW()",
    "SELECT k FROM s WHERE ts <> NOW()": "such a condition on NOW()",
    "SELECT k FROM s WHERE NOW() > NOW() - INTERVAL 1 HOUR": "such a condition on NOW()",
    "SELECT k FROM (SELECT k, MAX(at) AS m FROM s GROUP BY k) WHERE m > NOW()": "these rows may end at any time",
    "SELECT k FROM s [ROWS 5] WHERE at > NOW()": "these rows may end at any time",
    "SELECT k FROM t WHERE at > NOW()": "decides when a row of a stream is valid",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse(sql, catalog())
    assert REFUSED[sql] in str(caught.value)
    assert caught.value.line is not None
