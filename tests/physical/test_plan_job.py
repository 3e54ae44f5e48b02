"""Queries planned together; `python -m tests.physical.test_plan_job` writes the golden EXPLAIN JOB anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sash.physical.nodes import Output, PhysicalPlan, Stage, operations
from sash.physical.plan_channels import channels_of
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.options import STRATEGIES, Options
from sash.planning import PlannedJob, plan_query, plan_together
from sash.rows import parse_schema

GOLDEN = Path(__file__).parent / "golden" / "job.txt"
SALES = parse_schema("ts TIMESTAMP, store_id INT, item_id INT, price DOUBLE, quantity INT")
ITEMS = parse_schema("item_id INT, name STRING")
CATALOG = Catalog(
    {name: StreamEntry(name, SALES, "ts") for name in ("sales", "returns", "orders")},
    {
        "items": RelationEntry("items", ITEMS),
        "prices": RelationEntry("prices", ITEMS, changes=True),
        "offers": RelationEntry("offers", ITEMS, changes=True, retroactive=False),
    },
)

PAIRS = "SELECT DISTINCT store_id, item_id FROM sales [RANGE 1 MINUTE]"
SOLD = (
    "SELECT a.item_id, a.price FROM sales [RANGE 1 MINUTE] AS a JOIN returns [RANGE 1 MINUTE] AS b "
    "ON a.item_id = b.item_id"
)
TOTALS = "SELECT item_id, store_id, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item_id, store_id"
COUNT = "SELECT COUNT(*) AS n FROM sales [RANGE 1 MINUTE]"


def planned(*queries: str | tuple[str, Options], shards: int = 8, with_expiration: tuple[str, ...] = ()) -> PlannedJob:
    """The queries a, b, c ... planned together."""
    given = [(query, Options()) if isinstance(query, str) else query for query in queries]
    plans = [plan_query(sql, CATALOG, shards=shards, options=options) for sql, options in given]
    return plan_together(dict(zip("abcdefgh", plans, strict=False)), shards, with_expiration)


def names(stage: Stage) -> list[str]:
    return [node.name for node in operations(stage.root)]


def stages(job: PlannedJob, name: str) -> list[list[str]]:
    """The operators of the stages that hold one of this name."""
    return [names(stage) for stage in job.physical.stages if name in names(stage)]


def inputs(plan: PhysicalPlan) -> list[list[tuple[int | None, bool]]]:
    """Per stage and input, the stage that is read, and whether in the same shard."""
    return [[(given.leaf.stage, given.local) for given in stage.inputs] for stage in plan.stages]


def key(plan: PhysicalPlan, stage: int) -> list[str]:
    """The names of the columns that the first input of a stage is partitioned by."""
    given = plan.stages[stage].inputs[0]
    return [given.leaf.schema[column].name for column in given.keys]


@pytest.mark.parametrize("sql", [PAIRS, SOLD, TOTALS, COUNT, f"SELECT COUNT(*) AS n FROM ({PAIRS}) AS p"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_query_is_planned_as_if_alone(sql: str, strategy: Any) -> None:
    alone = plan_query(sql, CATALOG, shards=8, options=Options(strategy)).physical
    job = planned((sql, Options(strategy))).physical
    assert [names(stage) for stage in job.stages] == [names(stage) for stage in alone.stages]
    assert [stage.inputs for stage in job.stages] != []
    assert [[given.keys for given in stage.inputs] for stage in job.stages] == [
        [given.keys for given in stage.inputs] for stage in alone.stages
    ]
    assert not any(given.local for stage in job.stages for given in stage.inputs)
    assert job.legs == alone.legs


def test_equal_queries_are_outputs_of_one_stage() -> None:
    job = planned(PAIRS, "SELECT DISTINCT store_id AS store, item_id AS i FROM sales [RANGE 1 MINUTE] AS x", PAIRS)
    assert job.physical.outputs == (Output("a", 0), Output("b", 0), Output("c", 0))
    assert len(job.physical.stages) == len(job.physical.legs) == 1
    assert [column.name for column in job.columns("b")] == ["store", "i"]
    assert job.physical.queries_of(job.physical.stages[0]) == ["a", "b", "c"]


@pytest.mark.parametrize("window", ["RANGE 1 MINUTE", "RANGE UNBOUNDED", "NOW", "ROWS 3"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_equal_queries_without_state_of_their_own_are_one_stage(window: str, strategy: Any) -> None:
    if strategy == "re-evaluation" and window == "RANGE UNBOUNDED":
        return  # refused
    text = f"SELECT item_id AS {{}} FROM sales [{window}] WHERE price > 2"
    job = planned((text.format("x"), Options(strategy)), (text.format("y"), Options(strategy)))
    assert job.physical.outputs == (Output("a", 0), Output("b", 0))
    assert len(job.physical.stages) == 1


def test_distinct_runs_once_for_an_answer_and_an_aggregate_in_the_same_shards() -> None:
    job = planned(PAIRS, f"SELECT item_id, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY item_id")
    assert stages(job, "Distinct") == [["Distinct"]]
    assert inputs(job.physical) == [[(None, False)], [(0, True)]]
    assert key(job.physical, 0) == key(job.physical, 1) == ["item_id"]
    assert job.physical.outputs == (Output("a", 0), Output("b", 1))


def test_the_key_of_a_shared_stage_is_that_of_most_readers() -> None:
    by_store = f"SELECT store_id, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY store_id"
    by_item = f"SELECT item_id, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY item_id"
    more = f"SELECT item_id, MAX(store_id) AS n FROM ({PAIRS}) AS p GROUP BY item_id"
    both = f"SELECT item_id, store_id, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY item_id, store_id"
    plan = planned(by_store, by_item, more, both).physical
    assert key(plan, 0) == ["item_id"]
    assert inputs(plan) == [[(None, False)], [(0, False)], [(0, True)], [(0, True)], [(0, True)]]


def test_a_join_that_all_readers_take_with_retractions_keeps_no_results() -> None:
    job = planned(SOLD, f"SELECT item_id, SUM(price) AS t FROM ({SOLD}) AS q GROUP BY item_id")
    assert stages(job, "Join") == [["Join", "Project"]]
    assert inputs(job.physical) == [[(None, False)] * 2, [(0, True)]]
    assert [stage.root.expiry for stage in job.physical.stages] == ["explicit", "explicit"]


def test_a_join_whose_times_a_reader_needs_is_shared_with_them() -> None:
    first = f"SELECT item_id, FIRST(price) AS t FROM ({SOLD}) AS q GROUP BY item_id"
    job = planned(first, f"SELECT item_id, SUM(price) AS t FROM ({SOLD}) AS q GROUP BY item_id")
    assert stages(job, "Join") == [["Join", "Project"]]
    assert job.physical.stages[0].root.expiry == "calendar"


def test_an_aggregate_is_shared_by_what_is_computed_of_it() -> None:
    job = planned(
        f"SELECT item_id, total FROM ({TOTALS}) AS q WHERE total > 5",
        f"SELECT store_id, MAX(total) AS m FROM ({TOTALS}) AS q GROUP BY store_id",
        f"SELECT item_id, total FROM ({TOTALS}) AS q ORDER BY total LIMIT 3",
    )
    assert stages(job, "Aggregate")[0] == ["Aggregate"]
    assert inputs(job.physical) == [[(None, False)], [(0, True)], [(0, True)], [(0, False)]]


def test_readers_of_one_shard_are_in_that_shard() -> None:
    plan = planned(
        f"SELECT n FROM ({COUNT}) AS q WHERE n > 5", COUNT, f"SELECT n + 1 AS m FROM ({COUNT}) AS q"
    ).physical
    assert [stage.single for stage in plan.stages] == [True, True, True]
    assert inputs(plan) == [[(None, False)], [(0, True)], [(0, True)]]
    assert plan.outputs == (Output("a", 1), Output("b", 0), Output("c", 2))


def test_a_reader_of_two_single_stages_follows_one_of_them() -> None:
    returned = COUNT.replace("sales", "returns")
    plan = planned(
        COUNT, returned, f"SELECT a.n AS x, b.n AS y FROM ({COUNT}) AS a CROSS JOIN ({returned}) AS b"
    ).physical
    assert sorted(inputs(plan)[-1]) == [(0, True), (1, False)]


def test_conjuncts_in_another_order_are_equal_unless_one_may_fail() -> None:
    text = "SELECT DISTINCT item_id FROM sales [RANGE 1 MINUTE] WHERE {}"
    same = planned(text.format("price > 2 AND store_id = 3"), text.format("3 = store_id AND price > 2"))
    assert len(same.physical.stages) == 1
    guarded = planned(
        text.format("item_id <> 0 AND 10 / item_id > 2"), text.format("10 / item_id > 2 AND item_id <> 0")
    )
    assert len(guarded.physical.legs) == len({str(leg.node) for leg in guarded.physical.legs})


def test_constants_that_python_takes_for_equal_are_not() -> None:
    text = "SELECT DISTINCT 1 / (price * {}) AS c FROM sales [RANGE 1 MINUTE]"
    assert len(planned(text.format("0.0D"), text.format("-0.0D")).physical.stages) == 2


@pytest.mark.parametrize(
    "options",
    [
        Options("direct"),
        Options("negative-tuple"),
        Options(tau=1_000_000),
        Options(partitions=7),
        Options(join="binary"),
    ],
)
def test_unequal_options_share_scans_alone(options: Options) -> None:
    job = planned(PAIRS, (PAIRS, options))
    assert len(job.physical.outputs) == len(job.physical.stages) == 2
    assert len(job.physical.legs) == 1
    strategy = "update-pattern-aware" if options.strategy == "auto" else options.strategy
    assert [(stage.strategy, stage.tau) for stage in job.physical.stages] == [
        ("update-pattern-aware", None),
        (strategy, options.tau),
    ]


def test_the_strategy_that_auto_stands_for_is_equal_to_it() -> None:
    assert len(planned(PAIRS, (PAIRS, Options("update-pattern-aware"))).physical.stages) == 1


@pytest.mark.parametrize("strategy", ["input-triggered", "clock-triggered"])
def test_operators_that_run_when_rows_reach_them_are_shared_by_equal_queries_alone(strategy: Any) -> None:
    options = Options(strategy)
    counted = f"SELECT item_id, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY item_id"
    assert len(stages(planned((PAIRS, options), (counted, options)), "Distinct")) == 2
    assert len(planned((PAIRS, options), (PAIRS, options)).physical.stages) == 1


def test_windows_filters_and_slides_that_differ_are_kept_apart() -> None:
    texts = [
        PAIRS,
        PAIRS.replace("1 MINUTE", "2 MINUTES"),
        PAIRS.replace("1 MINUTE", "1 MINUTE SLIDE 1 SECOND"),
        PAIRS.replace("RANGE 1 MINUTE", "ROWS 5"),
        PAIRS + " WHERE price > 2",
    ]
    plan = planned(*texts).physical
    assert len({output.stage for output in plan.outputs}) == len(plan.legs) == 5


def test_updates_of_a_relation_are_read_by_every_stage_that_needs_them() -> None:
    text = "SELECT s.store_id, p.name FROM sales [RANGE 1 MINUTE] AS s JOIN {} AS p ON s.item_id = p.item_id"
    for relation in ("prices", "offers"):
        joined = text.format(relation)
        job = planned(joined + " WHERE s.price > 2", joined + " WHERE s.price > 3")
        assert all("Updates" not in one or len(one) > 1 for one in stages(job, "Updates"))
        assert len(job.physical.legs) == 3


@pytest.mark.parametrize("strategy", ["time-probing", "time-message", "piggyback"])
def test_a_distinct_that_is_shared_retracts(strategy: Any) -> None:
    options = Options(strategy)
    counted = f"SELECT item_id, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY item_id"
    job = planned((counted, options), (f"SELECT item_id, store_id FROM ({PAIRS}) AS p WHERE item_id > 2", options))
    other = planned((counted, options), (PAIRS, options))
    assert all(stage.root.expiry == "explicit" for stage in (*job.physical.stages, *other.physical.stages))
    assert len(stages(other, "Distinct")) == 1


def test_expiration_times_are_added_for_the_queries_that_keep_their_answers() -> None:
    text = "SELECT item_id, price FROM sales [RANGE 1 MINUTE]"
    job = planned(text, text, with_expiration=("b",))
    assert (job.has_expiration("a"), job.has_expiration("b")) == (False, True)
    assert [column.name for column in job.columns("b")] == ["item_id", "price", "_ends"]


def test_hybrid_queries_share_a_join_below_expire() -> None:
    options = Options("hybrid")
    counted = f"SELECT item_id, SUM(price) AS n FROM ({SOLD}) AS q GROUP BY item_id"
    job = planned((PAIRS, options), (counted, options), (SOLD, options))
    assert stages(job, "Join") == [["Join", "Project"]]
    assert [one for one in stages(job, "Expire") if "Join" in one] == []


BOTH = "FROM sales [RANGE 1 MINUTE] AS a JOIN returns [RANGE 1 MINUTE] AS b ON a.item_id = b.item_id"


def test_joins_that_differ_in_columns_are_one_where_results_are_sent_anyway() -> None:
    job = planned(
        f"SELECT a.store_id, COUNT(*) AS n {BOTH} GROUP BY a.store_id",
        f"SELECT a.store_id, SUM(b.price) AS n {BOTH} GROUP BY a.store_id",
    )
    assert stages(job, "Join") == [["Join"]]
    assert inputs(job.physical) == [[(None, False)] * 2, [(0, False)], [(0, False)]]
    assert len([channel for channel in channels_of(job.physical, share=True).channels if channel.stream is None]) == 1
    assert "  a, b share a join with columns store_id, item_id, item_id, price: cost per second" in job.explain()


def test_joins_stay_apart_where_their_results_need_not_leave_the_stage() -> None:
    job = planned(
        f"SELECT a.item_id, COUNT(*) AS n {BOTH} GROUP BY a.item_id",
        f"SELECT a.item_id, SUM(b.price) AS n {BOTH} GROUP BY a.item_id",
    )
    assert len(stages(job, "Join")) == 2
    assert "  a, b have separate joins: cost per second" in job.explain()


def test_a_shared_chain_of_joins_is_an_operator_of_its_own() -> None:
    chain = f"{BOTH} JOIN orders [RANGE 1 MINUTE] AS c ON c.item_id = b.item_id"
    job = planned(
        f"SELECT MEDIAN(a.price) AS n {chain}", f"SELECT MEDIAN(c.price) AS n {chain} WHERE a.price > c.price"
    )
    assert stages(job, "MultiJoin") == [["MultiJoin"]]


def test_joins_of_unequal_options_stay_apart() -> None:
    queries = (f"SELECT a.store_id, COUNT(*) AS n {BOTH} GROUP BY a.store_id", SOLD)
    assert "Joins that differ" not in planned(queries[0], (queries[1], Options("direct"))).explain()


JOB = (
    PAIRS,
    f"SELECT item_id, COUNT(*) AS stores FROM ({PAIRS}) AS p GROUP BY item_id",
    f"SELECT COUNT(*) AS pairs FROM ({PAIRS}) AS p",
    "SELECT DISTINCT store_id AS store, item_id AS item FROM sales [RANGE 1 MINUTE]",
    (f"SELECT item_id, SUM(price) AS total FROM ({SOLD}) AS q GROUP BY item_id", Options(tau=1_000_000)),
)


def test_job_is_explained_as_in_the_golden_file() -> None:
    assert planned(*JOB).explain() == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text(planned(*JOB).explain(), encoding="utf-8")
