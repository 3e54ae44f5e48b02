"""How multi-way joins are planned: hash sizes under a limit, expensive conditions, and orders by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sash.errors import StatisticsError
from sash.operators.reordering import JoinStatistics
from sash.physical.join_plan import JoinPlan
from sash.physical.nodes import Filter, Join, MultiJoin, Operation
from sash.physical.nodes import operations as operations_of
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.describe import describe
from sash.plan.options import Options
from sash.plan.statistics import Statistics
from sash.planning import Planned, plan_query
from sash.rows import parse_schema
from sash.testing import replay

SCHEMA = parse_schema("ts TIMESTAMP, k BIGINT, v BIGINT, w BIGINT, name STRING")
JOIN = "SELECT a.v FROM s AS a, r AS b, q AS c, p AS d WHERE a.k = b.k AND b.k = c.k AND c.k = d.k"


def planned(
    sql: str, rates: tuple[float, ...] = (1, 1, 1, 50), peaks: dict[str, float] | None = None, **options: Any
) -> Planned:
    distinct = {"k": 50.0, "v": 4.0, "w": 1000.0}
    streams = {
        name: StreamEntry(name, SCHEMA, "ts", Statistics(rate=rate, distinct=distinct, peak=(peaks or {}).get(name)))
        for name, rate in zip("srqp", rates, strict=True)
    }
    return plan_query(f"{sql} WINDOW 100 SECONDS", Catalog(streams), shards=1, options=Options(**options))


def operations(plan: Planned) -> list[Operation]:
    return [node for stage in plan.physical.stages for node in operations_of(stage.root)]


def join_of(plan: Planned) -> JoinPlan:
    (found,) = [node.plan for node in operations(plan) if isinstance(node, MultiJoin)]
    return found


def test_without_a_limit_the_cost_is_that_of_lists_per_key() -> None:
    """Only rows that match are looked at: as with as many buckets as values."""
    plan = join_of(planned(JOIN))
    assert plan.buckets is None
    as_many = replace(plan, sizes=(50,) * 4).ordered(plan.figures)
    assert plan.cost == pytest.approx(as_many.cost)
    assert plan.order == as_many.order


def test_a_limit_of_buckets_is_spread_by_what_windows_cost() -> None:
    """6.5: more to the fast stream; EXPLAIN says how many, and the operator has as many."""
    plan = planned(JOIN, buckets=48)
    join = join_of(plan)
    assert join.sizes is not None
    by_name = dict(zip(join.names, join.sizes, strict=True))
    assert sum(join.sizes) == 48
    assert by_name["p"] > max(size for name, size in by_name.items() if name != "p")
    assert join.buckets == join.sizes
    assert "hash buckets: " in plan.explain()
    assert f"p {by_name['p']}" in plan.explain()
    equal = replace(join, sizes=(12,) * 4).ordered(join.figures)
    assert join_of(planned(JOIN)).cost < join.cost < equal.cost


def test_tables_keep_their_sizes_when_orders_change() -> None:
    join = join_of(planned(JOIN, buckets=20))
    figures = join.figures
    turned = JoinStatistics(figures.rates[::-1], figures.rows[::-1], figures.keys, figures.shares)
    assert join.ordered(turned).sizes == join.sizes


def test_too_few_buckets_are_refused() -> None:
    with pytest.raises(StatisticsError, match="3 buckets are too few for 4 windows"):
        planned(JOIN, buckets=3)


def test_fewer_buckets_mean_more_rows_looked_at() -> None:
    rows = {name: [{"ts": ts, "k": ts % 20, "v": 1} for ts in range(60)] for name in "srq"}
    sql = "SELECT a.v FROM s AS a, r AS b, q AS c WHERE a.k = b.k AND b.k = c.k WINDOW 50 SECONDS"
    looked = [
        replay(sql, rows, unit="s", shards=1, buckets=buckets).counts["0.0.MultiJoin"].rows_examined
        for buckets in (3, 12, 60, None)
    ]
    assert looked == sorted(looked, reverse=True)
    assert looked[0] > 2 * looked[1] > 4 * looked[-1]


def test_what_drops_most_rows_is_checked_first() -> None:
    """Within a loop all comparisons cost the same; whatever functions they call are computed once per row."""
    join = join_of(planned(f"{JOIN} AND a.w <> b.w AND a.v <> b.v AND LENGTH(a.name) < LENGTH(b.name)"))
    assert [describe(theta.left.value) for theta in join.graph.thetas] == ["length(name)", "v", "w"]
    assert list(join.figures.shares) == sorted(join.figures.shares)


def test_dear_comparisons_come_where_they_are_made_for_the_fewest_results() -> None:
    """Every loop doubles the results: the comparison of a and d is made sooner than either would come by itself."""
    free = join_of(planned(JOIN, rates=(1, 1, 1, 1)))
    theta = "AND a.v <> d.v AND a.w <> d.w AND a.v <> d.w AND a.w <> d.v"
    tested = join_of(planned(f"{JOIN} {theta}", rates=(1, 1, 1, 1)))
    a, d = tested.names.index("s"), tested.names.index("p")
    assert {tested.order.index(a), tested.order.index(d)} == {0, 1}
    assert tested.cost > free.cost


def test_conditions_over_more_inputs_are_tested_cheap_ones_first() -> None:
    plan = planned(f"{JOIN} AND CONCAT(a.name, b.name) LIKE '%x%' AND a.name < c.name AND GREATEST(a.v, b.v) > c.v")
    filters = [describe(node.predicate) for node in operations(plan) if isinstance(node, Filter)]
    assert filters == ["greatest(v, v) > v", "name < name", "concat(name, name) LIKE '%x%'"]


def test_of_several_keys_the_one_with_most_values_is_looked_up() -> None:
    join = join_of(planned("SELECT a.v FROM s AS a, r AS b, q AS c WHERE a.v = b.v AND b.v = c.v AND a.w = b.w"))
    assert [max(count for count in counts if count is not None) for counts in join.figures.keys] == [100, 4]
    assert len(join.common_keys) == 1


def test_keys_that_are_computed_are_columns_of_their_input() -> None:
    """So that their rows are looked up, not scanned: all in one operator if the key never fails, else two at a time."""
    sql = "SELECT a.v FROM s AS a JOIN r AS b ON a.k = b.k JOIN q AS c ON"
    join = join_of(planned(f"{sql} LOWER(b.name) = LOWER(c.name)"))
    assert len(join.graph.attributes) == 2
    assert join.graph.connected
    joined = [node for node in operations(planned(f"{sql} b.v + 1 = c.v + 1")) if isinstance(node, Join)]
    assert [len(node.keys) for node in joined] == [1, 1]


def test_orders_are_described_by_name() -> None:
    join = join_of(planned(JOIN))
    for order in ((0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)):
        orders = tuple(join.graph.follow(order, origin) for origin in range(4))
        assert join.describe(orders) == ", ".join(join.names[j] for j in order)
    own = ((0, 1, 2, 3), (3, 2, 1, 0), (2, 1, 0, 3), (3, 0, 1, 2))
    assert join.describe(own).startswith("(")


def test_a_run_reports_the_current_order_of_all_shards() -> None:
    rows = {name: [{"ts": ts, "k": ts % 7, "v": 1} for ts in range(9)] for name in "srq"}
    sql = "SELECT a.v FROM s AS a, r AS b, q AS c WHERE a.k = b.k AND b.k = c.k WINDOW 5 SECONDS"
    for shards, where in ((1, "the only shard"), (3, "all 3 shards")):
        result = replay(sql, rows, unit="s", shards=shards)
        (choices,) = [seen.current_choice for name, seen in result.counts.items() if name.endswith("MultiJoin")]
        assert sorted(choices) == list(range(shards))
        assert f"now in {where}: {choices[0][0]}, as planned" in result.explain()


@pytest.mark.parametrize("options", [{"reorder": False}, {"strategy": "re-evaluation"}], ids=str)
def test_a_stream_that_fluctuates_goes_near_the_top_of_a_fixed_order(options: dict[str, Any]) -> None:
    """Paper 4, 5.4; a peak below twice the rate is no fluctuation, and orders that may change do not heed it."""
    rates, given = (1, 1.1, 1.2, 1.3), {"join": "eager-nlj"}
    peaks = {"s": 1.5, "p": 13.0}
    adaptive = planned(JOIN, rates, peaks, **given)
    steady, fixed = planned(JOIN, rates, **given, **options), planned(JOIN, rates, peaks, **given, **options)
    assert join_of(adaptive).order == join_of(steady).order
    assert [name for name in "srqp" if "srqp".index(name) == join_of(steady).order[-1]] == ["p"]
    assert join_of(fixed).describe(join_of(fixed).orders).startswith("p, ")
    assert "fixed" not in adaptive.explain()
    assert "orders; fixed\n" in steady.explain()
    assert "fixed, so p, whose peak is 10 times its rate, is near the top" in fixed.explain()
