"""The interval of lazy maintenance (paper 5, 5.4): chosen by cost, shown by EXPLAIN, and overridable.

As measured, a row that is purged with others saves nothing; what the rule chooses is shown for costs by which it does.
"""

from __future__ import annotations

import pytest

from sash.errors import StrategyError
from sash.optimizer import plan_cost
from sash.optimizer.plan_cost import PlanCosts
from sash.physical.nodes import Join as JoinNode
from sash.physical.nodes import operations
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.nodes import Join, walk
from sash.plan.options import Options
from sash.plan.statistics import Statistics
from sash.plan.types import BIGINT, Field
from sash.planning import Planned, plan_query
from sash.testing import replay

COLUMNS = (Field("ts", BIGINT), Field("k", BIGINT))
SQL = "SELECT s.k, COUNT(*) AS n FROM s [RANGE 100 SECONDS] JOIN r [RANGE 200 SECONDS] ON s.k = r.k GROUP BY s.k"


def planned(rate: float, values: float, sql: str = SQL, options: Options | None = None) -> Planned:
    known = Statistics(rate, distinct={"k": values})
    entries = {name: StreamEntry(name, COLUMNS, "ts", known) for name in "sr"}
    return plan_query(sql, Catalog(entries), options=options or Options())


def interval(made: Planned) -> int | None:
    (join,) = [node for node in walk(made.optimized) if isinstance(node, Join)]
    return join.purge


def planned_purge(made: Planned) -> int | None:
    nodes = [node for stage in made.physical.stages for node in operations(stage.root)]
    (join,) = [node for node in nodes if isinstance(node, JoinNode)]
    return join.purge


@pytest.fixture
def saving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_cost, "SAVED", 0.4)


def test_as_measured_nothing_is_saved_so_that_rows_are_purged_at_once() -> None:
    made = planned(1_000, 1e9)
    assert interval(made) is None
    refused = [one for one in made.optimization.rejected if one.rule == "purge_lazily"]
    assert refused, "it is considered, and EXPLAIN ALL shows it"
    assert all(one.cost > made.optimization.cost for one in refused)


@pytest.mark.usefixtures("saving")
def test_the_more_is_found_in_vain_the_shorter_the_interval() -> None:
    chosen = [interval(planned(1_000, values)) or 0 for values in (1e9, 1e6, 1e5, 10)]
    assert chosen == sorted(chosen, reverse=True)
    assert chosen[0] == 10_000_000, "at most a tenth of the shorter window"
    assert 0 < chosen[2] < chosen[0]
    assert chosen[3] == 0, "with ten values it is not worth it"


@pytest.mark.usefixtures("saving")
def test_few_rows_are_not_worth_it() -> None:
    assert interval(planned(1, 1e9)) is None


@pytest.mark.usefixtures("saving")
def test_the_cost_is_lower_and_told() -> None:
    made = planned(1_000, 1e9)
    (step,) = [step for step in made.optimization.steps if step.rule == "purge_lazily"]
    assert step.after < step.before
    assert planned_purge(made) == 10_000_000
    text = made.explain(all=True)
    assert "PURGED EVERY 10 SECONDS" in text
    assert "purge_lazily" in text
    others = [one for one in made.optimization.rejected if one.rule == "purge_lazily"]
    assert others
    assert all(one.cost >= step.after for one in others)


@pytest.mark.usefixtures("saving")
def test_more_is_kept() -> None:
    (join,) = [node for node in walk(planned(1_000, 1e9).optimized) if isinstance(node, Join)]
    costs = PlanCosts()
    assert costs.state(join) == pytest.approx(300_000 + 2 * 1_000 * 10 / 2)


@pytest.mark.usefixtures("saving")
def test_it_can_be_overridden() -> None:
    assert planned_purge(planned(1_000, 1e9, options=Options(purge=0))) is None
    assert planned_purge(planned(1, 10, options=Options(purge=7))) == 7
    with pytest.raises(StrategyError, match="must not be negative"):
        Options(purge=-1)


@pytest.mark.usefixtures("saving")
@pytest.mark.parametrize("strategy", ["negative-tuple", "hybrid"])
def test_where_ends_are_said_there_is_nothing_to_choose(strategy: str) -> None:
    made = planned(1_000, 1e9, options=Options(strategy))
    assert interval(made) is None
    said = planned(1_000, 1e9, "SELECT s.k FROM s [RANGE 1 MINUTE] JOIN r [RANGE 1 MINUTE] ON s.k = r.k")
    assert interval(said) is None


def test_the_answer_is_the_same() -> None:
    streams = {name: [{"ts": 40 * at, "k": at % number} for at in range(60)] for name, number in (("s", 3), ("r", 5))}
    sql = "SELECT s.k, COUNT(*) AS n FROM s [RANGE 1 SECOND] JOIN r [RANGE 500 MILLISECONDS] ON s.k = r.k GROUP BY s.k"
    eager = replay(sql, streams, batch=7, purge=0)
    for purge in (1, 100, 5_000):
        lazy = replay(sql, streams, batch=7, purge=purge)
        assert sorted(map(repr, lazy.changes)) == sorted(map(repr, eager.changes))
        assert lazy.state_rows == 0
