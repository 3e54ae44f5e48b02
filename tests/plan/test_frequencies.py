"""How rows spread over values: shares add up, and skewed joins are estimated as a count of them finds."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sash.errors import StatisticsError
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.frequencies import Distribution, chance_of_equality, compared, in_both, together
from sash.plan.rates import Estimates
from sash.plan.statistics import FREQUENT, Statistics, declared, observed, seen
from sash.plan.types import BIGINT, STRING, Field
from sash.sql import parse

COLUMNS = (Field("ts", BIGINT), Field("k", BIGINT), Field("p", STRING))


@st.composite
def spreads(draw: st.DrawFn) -> Distribution:
    weights = draw(st.dictionaries(st.integers(0, 8), st.integers(1, 50), max_size=6))
    rest = draw(st.integers(1, 50))
    total = sum(weights.values()) + rest
    count = len(weights) + draw(st.integers(1, 100))
    return Distribution(count, {value: weight / total for value, weight in weights.items()})


@given(spreads(), spreads())
@example(Distribution(3, {1: 0.5, 2: 0.25}), Distribution(100, {7: 0.9}))
@example(Distribution(1), Distribution(1))
def test_shares_add_up(left: Distribution, right: Distribution) -> None:
    groups = compared(left, right)
    assert sum(group.values * group.left for group in groups) == pytest.approx(1, abs=0.02)
    assert sum(group.values * group.right for group in groups) == pytest.approx(1, abs=0.02)
    assert 0 <= chance_of_equality(left, right) <= 1
    assert chance_of_equality(left, right) == pytest.approx(chance_of_equality(right, left))


def test_even_values_are_contained() -> None:
    assert chance_of_equality(Distribution(50), Distribution(20)) == pytest.approx(1 / 50)


def test_frequent_values_meet() -> None:
    left, right = Distribution(10, {"a": 0.6}), Distribution(10, {"a": 0.5, "b": 0.3})
    assert chance_of_equality(left, right) == pytest.approx(0.6 * 0.5 + 0.3 * 0.4 / 9 + 8 * (0.4 / 9) * (0.2 / 8))
    assert in_both(left, right)["a"] == pytest.approx(0.3 / chance_of_equality(left, right))
    assert left.seen(1e9) == pytest.approx(10)
    assert together({"a": 0.6}, 30, {"a": 0.2}, 10) == {"a": pytest.approx(0.5)}


def _zipf(size: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    draw = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 501) ** 1.2
    return draw.choice(500, size, p=weights / weights.sum()).astype(np.int64)


def test_a_skewed_join_is_estimated_within_a_tenth() -> None:
    """By distinct counts alone it would be far off."""
    sides = [_zipf(20_000, 1), _zipf(20_000, 2)]
    counts = [Counter(side.tolist()) for side in sides]
    pairs = sum(count * counts[1][value] for value, count in counts[0].items())
    columns = [[pa.array(np.arange(20_000)), pa.array(side), pa.array(["x", "y"] * 10_000)] for side in sides]
    known = [seen(COLUMNS, column, 20_000_000, "ts") for column in columns]

    def estimated(statistics: list[Statistics]) -> float:
        entries = {name: StreamEntry(name, COLUMNS, "ts", one) for name, one in zip("sr", statistics, strict=True)}
        sql = "SELECT s.k FROM s [RANGE 20 SECONDS] JOIN r [RANGE 20 SECONDS] ON s.k = r.k"
        return Estimates()(parse(sql, Catalog(entries))).rows

    assert estimated(known) == pytest.approx(pairs, rel=0.1)
    even = [Statistics(one.rate, distinct=one.distinct) for one in known]
    assert estimated(even) < pairs / 10


def test_seen() -> None:
    columns = [pa.array([0, 1, 2, 3]), pa.array([7, 7, None, 8]), pa.array(["a", "b", "a", "a"])]
    known = seen(COLUMNS, columns, 2_000_000, "ts")
    assert (known.rate, known.distinct) == (2, {"k": 2, "p": 2})
    assert known.shares("K") == {7: 0.5, 8: 0.25}
    many = seen(COLUMNS[:2], [pa.array(range(500)), pa.array(range(500))], 1, "ts")
    assert (len(many.shares("k")), many.of_column("k")) == (FREQUENT, 500)


def test_a_selection_of_a_frequent_value() -> None:
    known = Statistics(100, distinct={"k": 1_000, "p": 11}, frequent={"p": {"ftp": 0.75}})
    catalog = Catalog({"s": StreamEntry("s", COLUMNS, "ts", known)})

    def rate(predicate: str) -> float:
        return Estimates()(parse(f"SELECT k FROM s [RANGE 1 MINUTE] WHERE {predicate}", catalog)).rate

    assert rate("p = 'ftp'") == pytest.approx(75)
    assert rate("p = 'www'") == pytest.approx(2.5)
    assert rate("p <> 'ftp'") == pytest.approx(25)
    assert rate("p IN ('ftp', 'www')") == pytest.approx(77.5)
    assert rate("NOT 'ftp' = p") == pytest.approx(25)


def test_what_is_declared_goes_before_what_was_observed() -> None:
    before = observed(100, 10_000_000, {"k": 5}, frequent={"k": {1: 80, 2: 20}})
    assert before.shares("k") == {1: 0.8, 2: 0.2}
    both = declared("s", ("ts", "k"), rate=7, statistics=before)
    assert (both.rate, both.distinct, both.shares("k")) == (7, {"k": 5}, {1: 0.8, 2: 0.2})
    with pytest.raises(StatisticsError, match="no column 'k'"):
        declared("s", ("ts", "v"), statistics=before)
    with pytest.raises(StatisticsError, match="sum to at most 1"):
        Statistics(frequent={"k": {1: 0.7, 2: math.inf}})
