"""Paper 5's Query 5, negation and a join: the optimizer picks the cheaper of its two forms, whichever is written."""

from __future__ import annotations

import pytest

from sash.optimizer.optimizer import optimize
from sash.optimizer.plan_cost import plan_cost
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.nodes import Except, Join, walk
from sash.plan.statistics import Statistics
from sash.plan.types import BIGINT, STRING, Field
from sash.sql import parse

LINK = (Field("ts", BIGINT), Field("src", BIGINT), Field("dst", BIGINT), Field("protocol", STRING))
BELOW = (
    "SELECT t.src, c.dst FROM (SELECT src FROM link1 [{w}] EXCEPT ALL SELECT src FROM link2 [{w}]) AS t "
    "JOIN link3 [{w}] AS c ON t.src = c.src WHERE c.protocol = 'ftp'"
)
ABOVE = (
    "SELECT a.src, c.dst FROM link1 [{w}] AS a JOIN link3 [{w}] AS c ON a.src = c.src WHERE c.protocol = 'ftp' "
    "EXCEPT ALL "
    "SELECT b.src, c.dst FROM link2 [{w}] AS b JOIN link3 [{w}] AS c ON b.src = c.src WHERE c.protocol = 'ftp'"
)
CHOICES = frozenset({"pull_up_negation", "push_down_negation"})


def catalog(protocols: float) -> Catalog:
    """Three links, of whose rows on the third one in `protocols` is ftp."""
    counts = {"src": 2_000, "dst": 500, "protocol": protocols}
    return Catalog(
        {name: StreamEntry(name, LINK, "ts", Statistics(100, distinct=counts)) for name in ("link1", "link2", "link3")}
    )


def is_pulled_up(sql: str, protocols: float) -> bool:
    plan = optimize(parse(sql, catalog(protocols))).plan
    top = next(node for node in walk(plan) if isinstance(node, Join | Except))
    return isinstance(top, Except)


@pytest.mark.parametrize("protocols", [1, 4, 50, 1_000])
@pytest.mark.parametrize("seconds", [10, 100, 1_000])
def test_the_cheaper_form_is_taken(protocols: float, seconds: int) -> None:
    costs, chosen = [], []
    for text in (BELOW, ABOVE):
        sql = text.format(w=f"RANGE {seconds} SECONDS")
        as_written = optimize(parse(sql, catalog(protocols)), disable=CHOICES).plan
        costs.append(plan_cost(as_written))
        chosen.append(optimize(parse(sql, catalog(protocols))).cost)
    assert chosen == pytest.approx([min(costs)] * 2)


def test_either_form_has_its_day() -> None:
    """Negation above a join with few results, below one with many; EXPLAIN shows the rejected plans with their costs."""
    sql = BELOW.format(w="RANGE 1000 SECONDS")
    assert is_pulled_up(sql, protocols=1_000)
    assert not is_pulled_up(sql, protocols=1)
    assert not is_pulled_up(ABOVE.format(w="RANGE 1000 SECONDS"), protocols=1)
    kept = optimize(parse(sql, catalog(1)))
    (other,) = [one for one in kept.rejected if one.rule == "pull_up_negation"]
    assert other.cost > kept.cost == other.instead
    taken = optimize(parse(sql, catalog(1_000)))
    step = next(step for step in taken.steps if step.rule == "pull_up_negation")
    assert step.after < step.before


def test_frequent_values_are_counted_with() -> None:
    """Where half of all rows are of one source, and half of them ftp, the join gives more than distinct counts tell."""
    counts = {"src": 2_000, "dst": 500, "protocol": 1_000}
    even = Statistics(100, distinct=counts)
    skewed = Statistics(100, distinct=counts, frequent={"src": {7: 0.5}, "protocol": {"ftp": 0.5}})
    for statistics, pulled_up in ((even, True), (skewed, False)):
        entries = {name: StreamEntry(name, LINK, "ts", statistics) for name in ("link1", "link2", "link3")}
        for text in (BELOW, ABOVE):
            plan = optimize(parse(text.format(w="RANGE 10 SECONDS"), Catalog(entries))).plan
            top = next(node for node in walk(plan) if isinstance(node, Join | Except))
            assert isinstance(top, Except) == pulled_up
