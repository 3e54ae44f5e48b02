"""Interval joins: how long rows are kept, and endless state where it is allowed."""

from __future__ import annotations

from typing import Any

import pytest

from sash.errors import OptionError, UnboundedStateError
from sash.optimizer.plan_cost import PlanCosts
from sash.physical.nodes import IntervalJoin, operations
from sash.plan.catalog import Catalog
from sash.plan.nodes import Join, walk
from sash.plan.time_bounds import TimeBounds, time_bounds
from sash.planning import Planned, plan_query
from sash.rows import parse_schema
from sash.testing import replay
from sash.time import MINUTE, SECOND

NEAR = "a.ts BETWEEN b.ts - INTERVAL 5 MINUTES AND b.ts"


def planned(sql: str, unbounded: str = "refuse") -> Planned:
    catalog = Catalog()
    for name in ("a", "b", "c"):
        catalog.add_stream(name, parse_schema("ts TIMESTAMP, k INT, at TIMESTAMP"), "ts", rate=10, unbounded=unbounded)
    return plan_query(sql, catalog)


def bounds(condition: str, windows: str = "[RANGE 1 HOUR]") -> TimeBounds:
    plan = planned(f"SELECT a.k FROM a {windows} JOIN b {windows} ON a.k = b.k WHERE {condition}")
    return time_bounds(next(node for node in walk(plan.optimized) if isinstance(node, Join)))


@pytest.mark.parametrize(
    ("condition", "left", "right"),
    [
        (NEAR, 5 * MINUTE + 1, 1),
        ("b.ts > a.ts - INTERVAL 1 SECOND AND b.ts < a.ts + INTERVAL 1 MINUTE", MINUTE, SECOND),
        ("a.ts >= b.ts + INTERVAL 2 SECONDS", 1, None),
        ("a.ts = b.ts", 1, 1),
        ("a.at BETWEEN b.ts - INTERVAL 5 MINUTES AND b.ts", None, None),
        ("a.ts <= b.ts OR a.k = 1", None, None),
    ],
)
def test_bounds(condition: str, left: int | None, right: int | None) -> None:
    assert bounds(condition) == TimeBounds(left, right)


def test_a_sampled_window_has_no_bounds() -> None:
    assert not bounds(NEAR, "[RANGE 1 HOUR SLIDE 1 MINUTE]")


def test_explain_shows_the_bounds_and_the_smaller_state() -> None:
    sql = f"SELECT a.k FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON a.k = b.k AND {NEAR}"
    made = planned(sql)
    (join,) = (
        node for stage in made.physical.stages for node in operations(stage.root) if isinstance(node, IntervalJoin)
    )
    assert join.lives == (5 * MINUTE + 1, 1)
    assert "IntervalJoin ON k = k LEFT KEPT FOR 300000001 MICROSECONDS, RIGHT KEPT FOR 1 MICROSECOND" in made.explain()
    costs = PlanCosts()
    bounded, free = (
        costs.state(next(node for node in walk(planned(text).optimized) if isinstance(node, Join)))
        for text in (sql, sql.replace(NEAR, "a.k > 1"))
    )
    assert 3_000 < bounded < 3_100
    assert free > 40_000


def test_rows_leave_when_no_partner_can_come() -> None:
    rows = [{"ts": second, "k": second % 3} for second in range(1000)]
    given = {"streams": {"a": rows, "b": rows}, "unit": "s", "schemas": dict.fromkeys("ab", "ts TIMESTAMP, k INT")}
    sql = "SELECT a.ts FROM a {} JOIN b {} ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts"
    for window in ("", "[RANGE UNBOUNDED]", "[RANGE 900 SECONDS]"):
        result = replay(sql.format(window, window), **given, until=999, batch=100)
        assert result.actual is not None
        joined = sum(kept for name, kept in result.actual.rows.items() if "Join" in name)
        assert 0 < joined < 12


@pytest.mark.parametrize("strategy", ["auto", "negative-tuple", "hybrid", "direct"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.k, b.v FROM a [RANGE 9 SECONDS] LEFT JOIN b ON a.k = b.k AND {bounds}",
        "SELECT a.k, b.v FROM b RIGHT JOIN a [RANGE 9 SECONDS] ON a.k = b.k AND {bounds}",
        "SELECT k FROM a [RANGE 9 SECONDS] WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND {bounds})",
        "SELECT k FROM a [RANGE 9 SECONDS] WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.ts = b.ts)",
    ],
)
def test_rows_that_are_looked_up_leave_without_a_window(sql: str, strategy: Any) -> None:
    given = {
        name: [{"ts": second, "k": second % kinds, "v": second} for second in range(60)]
        for name, kinds in (("a", 5), ("b", 3))
    }
    text = sql.format(bounds="b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts + INTERVAL 2 SECONDS")
    schemas = dict.fromkeys(given, "ts TIMESTAMP, k INT, v INT")
    result = replay(text, given, schemas=schemas, unit="s", strategy=strategy, batch=10, until=90)
    assert result.state_rows == 0
    assert result.changes


UNBOUNDED = {
    "a join": "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.ts >= b.ts - INTERVAL 5 MINUTES",
    "LEFT JOIN": f"SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND {NEAR}",
    "EXCEPT": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "MEDIAN": "SELECT MEDIAN(k) AS m FROM a [RANGE UNBOUNDED]",
}


@pytest.mark.parametrize("operator", UNBOUNDED)
def test_endless_state_is_refused_unless_it_is_allowed(operator: str) -> None:
    with pytest.raises(UnboundedStateError, match=f"{operator} would have to remember every row"):
        planned(UNBOUNDED[operator])
    text = planned(UNBOUNDED[operator], "allow").explain()
    assert f"{operator} keeps every row of stream" in text
    assert "up to 10 more per second" in text


def test_a_bounded_join_has_no_endless_state() -> None:
    assert "grows without end" not in planned(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {NEAR}", "allow").explain()


def test_three_streams_are_joined_with_their_bounds() -> None:
    two = f"SELECT a.ts, a.k FROM a JOIN b ON a.k = b.k AND {NEAR}"
    with pytest.raises(UnboundedStateError):
        planned(f"SELECT t.k FROM ({two}) AS t JOIN c ON t.k = c.k")
    made = planned(f"SELECT t.k FROM ({two}) AS t JOIN c ON t.k = c.k", "allow")
    names = [node.name for stage in made.physical.stages for node in operations(stage.root)]
    assert "IntervalJoin" in names


THIRD = (
    "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL 5 MINUTES AND b.ts JOIN c ON c.k = b.k AND "
)


@pytest.mark.parametrize(
    ("condition", "left", "right"),
    [
        ("c.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE", MINUTE + 1, 1),
        ("c.ts BETWEEN a.ts AND a.ts + INTERVAL 9 MINUTES", 9 * MINUTE + 1, 5 * MINUTE + 1),
        ("c.ts = a.ts", 1, 5 * MINUTE + 1),
    ],
)
def test_a_joined_row_arrives_with_its_later_part(condition: str, left: int, right: int) -> None:
    """A pair of rows arrives up to five minutes after the time of `a`, and with that of `b`."""
    third = next(node for node in walk(planned(THIRD + condition).optimized) if isinstance(node, Join))
    assert time_bounds(third) == TimeBounds(left, right)


@pytest.mark.parametrize(("window", "operator"), [("1 HOUR", "IntervalJoin"), ("9 MINUTES", "MultiJoin")])
def test_windows_that_are_long_beside_the_bounds_are_joined_by_them(window: str, operator: str) -> None:
    near = "c.ts BETWEEN b.ts AND b.ts + INTERVAL 5 MINUTES"
    made = planned(f"{THIRD}{near} WINDOW {window}")
    names = {node.name for stage in made.physical.stages for node in operations(stage.root)}
    assert {name for name in names if "Join" in name} == {operator}


def test_endless_streams_are_joined_in_a_row() -> None:
    rows = [{"ts": second, "k": second % 3} for second in range(1000)]
    result = replay(
        THIRD.replace("MINUTES", "SECONDS") + "c.ts BETWEEN a.ts AND a.ts + INTERVAL 9 SECONDS",
        dict.fromkeys("abc", rows),
        unit="s",
        schemas=dict.fromkeys("abc", "ts TIMESTAMP, k INT"),
        until=999,
        batch=100,
    )
    assert result.actual is not None
    assert 0 < sum(kept for name, kept in result.actual.rows.items() if "Join" in name) < 60
    with pytest.raises(UnboundedStateError):
        planned(THIRD + "c.ts >= a.ts")


def test_unbounded_is_refuse_or_allow() -> None:
    with pytest.raises(OptionError, match="there is no unbounded 'yes'; use one of refuse, allow"):
        planned("SELECT k FROM a", "yes")
