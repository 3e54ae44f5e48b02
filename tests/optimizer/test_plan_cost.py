"""Costs of operators and plans by the formulas of paper 5, 5.4.1."""

from __future__ import annotations

import random

import pytest

from sash.optimizer.optimizer import optimize
from sash.optimizer.plan_cost import (
    PlanCosts,
    distinct_cost,
    group_by_cost,
    join_cost,
    negation_cost,
    plan_cost,
)
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.nodes import Node, walk
from sash.plan.statistics import Statistics
from sash.plan.types import BIGINT, Field
from sash.sql import parse
from tests.optimizer.random_plans import PlanMaker

COLUMNS = (Field("ts", BIGINT), Field("k", BIGINT), Field("v", BIGINT))
CATALOG = Catalog(
    {
        "s": StreamEntry("s", COLUMNS, "ts", Statistics(10, distinct={"k": 50, "v": 20})),
        "r": StreamEntry("r", COLUMNS, "ts", Statistics(2, distinct={"k": 25, "v": 20})),
    },
    {
        "t": RelationEntry("t", COLUMNS[1:], statistics=Statistics(rows=100, distinct={"k": 50})),
        "c": RelationEntry("c", COLUMNS[1:], changes=True, statistics=Statistics(rate=3, rows=100, distinct={"k": 50})),
        "n": RelationEntry(
            "n",
            COLUMNS[1:],
            retroactive=False,
            changes=True,
            statistics=Statistics(rate=3, rows=100, distinct={"k": 50}),
        ),
    },
)
S, R = "s [RANGE 1 MINUTE]", "r [RANGE 1 MINUTE]"
"""600 rows in the one window, 120 in the other."""


def top(sql: str, kind: str, *, hashed: bool = True) -> float:
    """What the first operator of that kind costs by itself."""
    node = next(node for node in walk(parse(sql, CATALOG)) if type(node).__name__ == kind)
    return PlanCosts(hashed=hashed).of(node)


def test_formulas() -> None:
    assert join_cost((10, 2), (600, 120)) == 10 * 120 + 2 * 600
    assert join_cost((10, 2), (600, 120), (50, 25)) == pytest.approx(10 * 4.8 + 2 * 12)
    assert join_cost((10, 2), (600, 120), (6_000, 6_000)) == 12, "a probe takes at least one step"
    assert distinct_cost(10, 50) == 250
    assert group_by_cost(10, 3) == 60
    assert negation_cost((10, 2), (1, 3)) == 2 * 10 + 4 * 2
    assert negation_cost((10, 2), (1, 3), premature=5) == 2 * 10 + 4 * 2 + 10


@pytest.mark.parametrize(
    ("sql", "kind", "scanned", "hashed"),
    [
        (f"SELECT k FROM {S} WHERE v > 3", "Filter", 10, 10),
        (f"SELECT k FROM {S}", "Project", 10, 10),
        (f"SELECT k FROM {S} UNION ALL SELECT k FROM {R}", "Union", 12, 12),
        (f"SELECT s.v FROM {S} JOIN {R} ON s.k = r.k", "Join", 2_400 + 24, 10 * 2.4 + 2 * 12 + 24),
        (f"SELECT s.v FROM {S} JOIN {R} ON s.k > r.k", "Join", 2_400 + 24, 2_400 + 24),
        (f"SELECT k FROM {S} INTERSECT SELECT k FROM {R}", "Intersect", 2_400 + 24, 10 * 4.8 + 2 * 12 + 24),
        (f"SELECT DISTINCT k FROM {S}", "Distinct", 10 * 25 + 2 * 50 / 60, 10 + 2 * 50 / 60),
        (f"SELECT k, SUM(v) AS n FROM {S} GROUP BY k", "Aggregate", 20 + 20, 20 + 20),
        (f"SELECT s.v FROM {S} JOIN t ON s.k = t.k", "Join", 10 * 100, 10 * 2),
        (f"SELECT s.v FROM {S} LEFT ANTI JOIN t ON s.k = t.k", "Join", 10 * 100, 10 * 2),
        (f"SELECT s.v FROM {S} JOIN n ON s.k = n.k", "Join", 10 * 100 + 3, 10 * 2 + 3),
        (f"SELECT s.v FROM {S} JOIN c ON s.k = c.k", "Join", 10 * 100 + 6 * 600 + 20 + 12, 10 * 2 + 6 * 12 + 20 + 12),
    ],
)
def test_operators(sql: str, kind: str, scanned: float, hashed: float) -> None:
    assert top(sql, kind, hashed=False) == pytest.approx(scanned)
    assert top(sql, kind) == pytest.approx(hashed)


def test_ends_that_are_said_double_the_work() -> None:
    """DISTINCT of a bag difference: two buffers, and each row comes as + and as -."""
    negation = f"SELECT k FROM {S} EXCEPT ALL SELECT k FROM {R}"
    costs = PlanCosts()
    plan = parse(f"SELECT DISTINCT k FROM ({negation}) q", CATALOG)
    distinct = next(node for node in walk(plan) if type(node).__name__ == "Distinct")
    below, output = costs.estimates(distinct.children[0]), costs.estimates(distinct)
    assert costs.of(distinct) == pytest.approx(2 * below.rate + 4 * below.rate + 2 * output.rate)
    assert costs.state(distinct) == pytest.approx(below.rows + output.rows)


def test_buffers_cost_by_update_pattern() -> None:
    """A ring is cheaper than a calendar, and a calendar is cheaper than a hash table, where retractions must find their rows."""
    windows = f"SELECT k FROM {S} UNION ALL SELECT k FROM {S}"
    lengths = f"SELECT k FROM {S} UNION ALL SELECT k FROM s [RANGE 60001 MILLISECONDS]"
    negated = f"SELECT k FROM ({windows}) q EXCEPT ALL SELECT k FROM {R} WHERE k = -1"
    costs = [
        top(f"SELECT k, COUNT(*) AS n FROM ({below}) q GROUP BY k", "Aggregate")
        for below in (windows, lengths, negated)
    ]
    assert costs[:2] == pytest.approx([20 * 2 + 20 * 2, 20 * 2 + 20 * 3])
    assert costs[2] == pytest.approx(20 * 2 + 20 * 4, rel=0.1)


def test_a_frequent_value_makes_a_join_dear() -> None:
    """Half of both streams' rows have one value: far more pairs than with fifty values alike."""
    half = Statistics(10, distinct={"k": 50}, frequent={"k": {7: 0.5}})
    entries = {name: StreamEntry(name, COLUMNS, "ts", half) for name in "sr"}
    sql = f"SELECT s.v FROM {S} JOIN {R} ON s.k = r.k"
    skewed, even = (PlanCosts().total(parse(sql, catalog)) for catalog in (Catalog(entries), CATALOG))
    assert skewed > 10 * even


def test_negation_costs_more_the_more_it_takes_back() -> None:
    few = top(f"SELECT v FROM {S} EXCEPT ALL SELECT k FROM {R} WHERE k = 7", "Except")
    many = top(f"SELECT k FROM {S} EXCEPT ALL SELECT k FROM {R}", "Except")
    assert many > few


def test_aggregates_that_keep_order_cost_more() -> None:
    simple = top(f"SELECT k, SUM(v) AS n FROM {S} GROUP BY k", "Aggregate")
    assert top(f"SELECT k, MAX(v) AS n FROM {S} GROUP BY k", "Aggregate") > simple


def test_equal_subtrees_cost_once() -> None:
    one = parse(f"SELECT k FROM {S} WHERE v = 1", CATALOG)
    both = parse(f"SELECT k FROM {S} WHERE v = 1 UNION ALL SELECT k FROM {S} WHERE v = 1", CATALOG)
    assert plan_cost(both) == pytest.approx(plan_cost(one) + 2 * 10 / 20)


def test_every_plan_has_a_cost() -> None:
    chance = random.Random(5)
    maker = PlanMaker(chance, failing=False)
    costs = PlanCosts()
    for _ in range(200):
        plan: Node = maker.plan(chance.randrange(1, 6))
        for node in walk(plan):
            assert costs.of(node) >= 0
            assert costs.state(node) >= 0
        assert plan_cost(optimize(plan).plan) >= 0
