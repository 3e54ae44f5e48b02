"""Estimates of what flows on a plan's edges, from declared statistics and from none."""

from __future__ import annotations

import math
import random
from collections import Counter, deque

import pytest

from sash.errors import StatisticsError
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.rates import DEFAULT_RATE, Estimate, Estimates, burst
from sash.plan.statistics import UNKNOWN, Statistics, declared, observed
from sash.plan.types import BIGINT, BOOLEAN, Field
from sash.sql import parse

COLUMNS = (Field("ts", BIGINT), Field("k", BIGINT), Field("v", BIGINT), Field("b", BOOLEAN))
S = Statistics(rate=10, distinct={"k": 50, "v": 20})
R = Statistics(rate=2, distinct={"k": 25, "v": 20})
CATALOG = Catalog(
    {
        "s": StreamEntry("s", COLUMNS, "ts", S),
        "r": StreamEntry("r", COLUMNS, "ts", R),
        "plain": StreamEntry("plain", COLUMNS, "ts"),
    },
    {"t": RelationEntry("t", COLUMNS[1:3], statistics=Statistics(rows=40, distinct={"k": 40}))},
)


def estimate(sql: str) -> Estimate:
    return Estimates()(parse(sql, CATALOG))


def test_windows() -> None:
    window = estimate("SELECT ts, k, v, b FROM s [RANGE 1 MINUTE]")
    assert (window.rate, window.rows, window.distinct) == (10, 600, (600, 50, 20, 2))
    assert window.premature == 0
    short = estimate("SELECT k FROM s [RANGE 2 SECONDS]")
    assert (short.distinct, short.values()) == ((50,), 20), "of fifty values that may come, no more than rows are there"
    assert estimate("SELECT k FROM plain [RANGE 1 SECOND]").rate == DEFAULT_RATE


def test_count_windows() -> None:
    window = estimate("SELECT k FROM s [PARTITION BY k ROWS 3]")
    assert (window.rate, window.rows, window.premature) == (10, 150, 10)


@pytest.mark.parametrize(
    ("predicate", "share"),
    [
        ("k = 3", 1 / 50),
        ("k <> 3", 49 / 50),
        ("k IN (1, 2, 3)", 3 / 50),
        ("k = v", 1 / 50),
        ("k > 3", 1 / 3),
        ("k > 3 AND v = 1", 1 / 60),
        ("v = 1 OR k = 1", 1 - 0.95 * 0.98),
        ("NOT k = 3", 49 / 50),
        ("k IS NULL", 0.05),
        ("k IS NOT NULL", 0.95),
    ],
)
def test_selections(predicate: str, share: float) -> None:
    left = estimate(f"SELECT k FROM s [RANGE 1 MINUTE] WHERE {predicate}")
    assert left.rate == pytest.approx(10 * share)
    assert left.rows == pytest.approx(600 * share)


def test_a_selected_value_is_the_only_one() -> None:
    assert estimate("SELECT k, v FROM s [RANGE 1 MINUTE] WHERE k = 3").distinct == (1, 20)


def test_a_join_of_windows() -> None:
    """Each new row meets the other window: 10 * 120 / 50 and 2 * 600 / 50 results a second."""
    joined = estimate("SELECT s.k, r.v FROM s [RANGE 1 MINUTE] JOIN r [RANGE 1 MINUTE] ON s.k = r.k")
    assert joined.rate == pytest.approx(48)
    assert joined.rows == pytest.approx(1_440)
    assert joined.distinct == (25, 20)


def test_a_lookup_in_a_table() -> None:
    joined = estimate("SELECT s.k FROM s [RANGE 1 MINUTE] JOIN t ON s.k = t.k")
    assert joined.rate == pytest.approx(8)
    assert joined.premature == 0
    alone = estimate("SELECT s.k FROM s [RANGE 1 MINUTE] LEFT ANTI JOIN t ON s.k = t.k")
    assert alone.rate == pytest.approx(2)


def test_duplicates_and_groups() -> None:
    values = estimate("SELECT DISTINCT k FROM s [RANGE 1 MINUTE]")
    assert values.rows == pytest.approx(50)
    assert values.rate == pytest.approx(50 / 60), "a value's row lives as long as a window's"
    pairs = estimate("SELECT DISTINCT k, v FROM s [RANGE 1 MINUTE]")
    assert pairs.rows == pytest.approx(600), "a thousand pairs do not fit into six hundred rows"
    groups = estimate("SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k")
    assert (groups.rate, groups.rows) == (20, 50)
    assert estimate("SELECT COUNT(*) AS n FROM s [RANGE 1 MINUTE]").rows == 1


def test_unions_and_tops() -> None:
    both = estimate("SELECT k FROM s [RANGE 1 MINUTE] UNION ALL SELECT k FROM r [RANGE 1 MINUTE]")
    assert (both.rate, both.rows, both.distinct) == (12, 720, (50,))
    top = estimate("SELECT k, v FROM s [RANGE 1 MINUTE] ORDER BY v LIMIT 6")
    assert top.rows == 6
    assert top.rate == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("rates", "values"), [((4.0, 1.0), (10, 10)), ((2.0, 2.0), (30, 30)), ((3.0, 1.0), (40, 10)), ((1.0, 4.0), (5, 5))]
)
@pytest.mark.parametrize("operator", ["EXCEPT ALL", "EXCEPT", "ANTI", "INTERSECT"])
def test_negation_against_a_simulation(operator: str, rates: tuple[float, float], values: tuple[int, int]) -> None:
    """Rows of the answer, and how often rows come. (Of set operators' rows that only replace their like, more may.)"""
    entries = {
        name: StreamEntry(name, COLUMNS, "ts", Statistics(rate, distinct={"k": count}))
        for name, rate, count in zip("sr", rates, values, strict=True)
    }
    sql = (
        "SELECT s.k FROM s [RANGE 20 SECONDS] LEFT ANTI JOIN r [RANGE 20 SECONDS] ON s.k = r.k"
        if operator == "ANTI"
        else f"SELECT k FROM s [RANGE 20 SECONDS] {operator} SELECT k FROM r [RANGE 20 SECONDS]"
    )
    guess = Estimates()(parse(sql, Catalog(entries)))
    rows, rate = _simulated(operator, rates, values, 20.0)
    assert guess.rows == pytest.approx(rows, rel=0.4, abs=0.1)
    if operator in ("EXCEPT ALL", "ANTI"):
        assert guess.rate == pytest.approx(rate, rel=0.15, abs=0.05)
    else:
        assert guess.rate >= 0.9 * rate
    assert 0 <= guess.premature <= guess.rate


def _simulated(
    operator: str, rates: tuple[float, float], values: tuple[int, int], length: float
) -> tuple[float, float]:
    """The mean number of rows of the answer, and the rows per second that come into it."""
    draw = random.Random(5)
    windows: tuple[deque[tuple[float, int]], deque[tuple[float, int]]] = (deque(), deque())
    counts: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    now, area, came, end = 0.0, 0.0, 0, 2_000.0

    def answer() -> Counter[int]:
        left, right = counts
        match operator:
            case "EXCEPT ALL":
                return left - right
            case "EXCEPT":
                return Counter({key: 1 for key in left if not right[key]})
            case "ANTI":
                return Counter({key: count for key, count in left.items() if not right[key]})
            case _:
                return Counter({key: 1 for key in left if right[key]})

    before = answer()
    while now < end:
        step = draw.expovariate(sum(rates))
        area += step * before.total()
        now += step
        side = draw.choices((0, 1), rates)[0]
        key = draw.randrange(values[side])
        windows[side].append((now, key))
        counts[side][key] += 1
        for window, counted in zip(windows, counts, strict=True):
            while window and window[0][0] <= now - length:
                counted[window.popleft()[1]] -= 1
            for gone in [key for key, count in counted.items() if not count]:
                del counted[gone]
        after = answer()
        came += (after - before).total()
        before = after
    return area / end, came / end


def test_unknown_statistics_are_none() -> None:
    assert Statistics().of_column("k") is None
    assert declared("s", ("K",), rate=3, distinct={"k": 4}).of_column("K") == 4


def test_observed_statistics_take_the_place_of_declared_ones() -> None:
    seen = observed(300, 60_000_000, {"K": 7}, known=S)
    assert seen.rate == 5
    assert (seen.of_column("k"), seen.of_column("v")) == (7, 20)
    with pytest.raises(StatisticsError, match="time span greater than 0"):
        observed(3, 0)


def test_a_stream_fluctuates_if_its_peak_is_twice_its_rate() -> None:
    catalog = Catalog()
    for name, peak in (("steady", 15.0), ("bursty", 45.0), ("even", None)):
        catalog.add_stream(name, COLUMNS, "ts", rate=10, peak=peak)
    sql = "SELECT a.v FROM {} [RANGE 1 SECOND] AS a JOIN even [RANGE 1 SECOND] AS b ON a.k = b.k WHERE a.v > 2"
    assert burst(parse(sql.format("bursty"), catalog)) == 4.5
    assert burst(parse(sql.format("steady"), catalog)) == 1
    assert observed(300, 60_000_000, peak=20).burst == 4
    assert observed(300, 60_000_000, known=catalog.streams["bursty"].statistics).peak == 45


@pytest.mark.parametrize(
    "known",
    [{"rate": -1}, {"rate": math.nan}, {"rows": math.inf}, {"distinct": {"k": 0}}, {"peak": 3}, {"rate": 4, "peak": 3}],
)
def test_statistics_that_cannot_be(known: dict[str, float]) -> None:
    with pytest.raises(StatisticsError):
        declared("s", ("k",), **known)  # type: ignore[arg-type]
    with pytest.raises(StatisticsError, match="no column"):
        declared("s", ("k",), distinct={"z": 3})


def test_statistics_are_no_part_of_a_plan() -> None:
    plan = parse("SELECT k FROM s [RANGE 1 MINUTE]", CATALOG)
    other = Catalog({"s": StreamEntry("s", COLUMNS, "ts", UNKNOWN)})
    assert plan == parse("SELECT k FROM s [RANGE 1 MINUTE]", other)
