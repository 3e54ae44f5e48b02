"""EXPLAIN against golden files; `python -m tests.physical.test_explain` writes them anew, to be read before they are kept."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.options import Options
from sash.plan.statistics import Statistics
from sash.planning import Planned, plan_query
from sash.rows import parse_schema

GOLDEN = Path(__file__).parent / "golden"
SALES = parse_schema("ts TIMESTAMP, store_id INT, item_id INT, price DOUBLE, quantity INT")

QUERIES = {
    "group_by": "SELECT item_id, SUM(price) AS total FROM sales [RANGE 1 MINUTE] WHERE price > 2 GROUP BY item_id",
    "global_aggregate": "SELECT COUNT(*) AS n, SUM(price) AS total FROM sales WHERE item_id > 5 WINDOW 1 MINUTE",
    "count_distinct": (
        "SELECT COUNT(DISTINCT s.store_id) AS n FROM sales AS s, favorite_items AS f WHERE s.item_id = f.item_id "
        "WINDOW 1 MINUTE"
    ),
    "distinct_join": (
        "SELECT DISTINCT a.item_id FROM sales AS a, returns AS b WHERE a.item_id = b.item_id AND a.price > 10 "
        "WINDOW 1 MINUTE"
    ),
    "minus_join_group": (
        "SELECT s.item_id, SUM(s.price) AS total FROM favorite_items AS f, (SELECT item_id, price FROM sales MINUS "
        "SELECT item_id, price FROM returns) AS s WHERE f.item_id = s.item_id GROUP BY s.item_id WINDOW 1 MINUTE"
    ),
    "join_over_negation": (
        "SELECT t.store_id, o.price FROM (SELECT a.item_id, a.store_id FROM sales [RANGE 1 MINUTE] AS a LEFT ANTI JOIN "
        "returns [RANGE 5 SECONDS] AS b ON a.item_id = b.item_id) AS t JOIN orders [RANGE 1 MINUTE] AS o "
        "ON t.item_id = o.item_id"
    ),
    "full_join": (
        "SELECT a.store_id, b.price FROM sales [RANGE 5 SECONDS] AS a FULL JOIN returns [RANGE 9 SECONDS] AS b "
        "ON a.item_id = b.item_id"
    ),
    "group_by_over_join": (
        "SELECT a.item_id, COUNT(*) AS n FROM sales [RANGE 1 MINUTE] AS a JOIN returns [RANGE 1 MINUTE] AS b "
        "ON a.item_id = b.item_id GROUP BY a.item_id"
    ),
    "negation_over_join": (
        "SELECT a.item_id FROM sales [RANGE 1 MINUTE] AS a JOIN returns [RANGE 1 MINUTE] AS b ON a.item_id = b.item_id "
        "EXCEPT ALL SELECT item_id FROM orders [RANGE 1 MINUTE]"
    ),
    "top_k_over_groups": (
        "SELECT store_id, COUNT(*) AS n FROM sales [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY store_id "
        "ORDER BY n DESC LIMIT 3"
    ),
    "union_of_lengths": "SELECT item_id FROM sales [RANGE 5 SECONDS] UNION ALL SELECT item_id FROM returns [RANGE 1 DAY]",
    "count_windows": (
        "SELECT a.store_id, b.price FROM sales [ROWS 100] AS a JOIN returns [PARTITION BY item_id ROWS 5] AS b "
        "ON a.item_id = b.item_id WHERE a.price > 2 AND b.price > 3"
    ),
    "count_window_by_group": "SELECT item_id, AVG(price) AS mean FROM sales [PARTITION BY item_id ROWS 5] GROUP BY item_id",
    "multi_join": (
        "SELECT a.item_id, a.price, b.price AS back, c.price AS price_then FROM sales [RANGE 1 MINUTE] AS a "
        "JOIN returns [RANGE 1 HOUR] AS b ON a.item_id = b.item_id JOIN orders [RANGE 5 SECONDS] AS c "
        "ON c.item_id = b.item_id"
    ),
    "hybrid_join": (
        "SELECT a.item_id FROM sales AS a, returns AS b, orders AS c WHERE a.item_id = b.item_id AND b.price < c.price "
        "WINDOW 1 MINUTE"
    ),
    "joins_on_two_attributes": (
        "SELECT a.price FROM sales AS a, returns AS b, orders AS c, sales AS d WHERE a.item_id = b.item_id "
        "AND b.item_id = c.item_id AND a.store_id = d.store_id WINDOW 1 MINUTE"
    ),
    "unbounded": "SELECT item_id, MAX(price) AS top FROM sales [RANGE UNBOUNDED] GROUP BY item_id",
}


EVERYTHING = {
    "all_of_negation_and_join": (
        "SELECT t.item_id, f.store_id FROM (SELECT item_id FROM sales [RANGE 1 MINUTE] EXCEPT ALL "
        "SELECT item_id FROM returns [RANGE 1 MINUTE]) AS t JOIN returns [RANGE 10 SECONDS] AS f ON t.item_id = f.item_id"
    ),
    "all_of_three_streams": (
        "SELECT a.price, b.price AS back, c.ts FROM sales [RANGE 1 HOUR] AS a JOIN returns [RANGE 1 MINUTE] AS b "
        "ON a.item_id = b.item_id JOIN sales [RANGE 1 SECOND] AS c ON b.item_id = c.item_id"
    ),
}
"""What EXPLAIN ALL is shown for."""


def planned(name: str) -> Planned:
    streams = {stream: StreamEntry(stream, SALES, "ts") for stream in ("sales", "returns", "orders")}
    relations = {"favorite_items": RelationEntry("favorite_items", parse_schema("item_id INT"))}
    return plan_query({**QUERIES, **EVERYTHING}[name], Catalog(streams, relations))


@pytest.mark.parametrize("name", QUERIES)
def test_plan_is_explained_as_in_the_golden_file(name: str) -> None:
    assert planned(name).explain() == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EVERYTHING)
def test_alternatives_are_explained_as_in_the_golden_file(name: str) -> None:
    text = planned(name).explain(all=True)
    assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert "Alternatives that cost more" in text
    assert "Alternatives that cost more" not in planned(name).explain()


def test_costs_of_the_rules_that_fired_end_at_the_plans_own() -> None:
    for name in (*QUERIES, *EVERYTHING):
        done = planned(name).optimization
        for earlier, later in itertools.pairwise(done.steps):
            assert later.before == pytest.approx(earlier.after)
        if done.steps:
            assert done.steps[-1].after == pytest.approx(done.cost)
        assert all(one.cost >= one.instead for one in done.rejected)


def test_declared_statistics_are_seen() -> None:
    sales = StreamEntry("sales", SALES, "ts", Statistics(rate=7, distinct={"item_id": 3}))
    text = plan_query(QUERIES["group_by"], Catalog({"sales": sales})).explain()
    assert "-> WKS; 7/s" in text
    assert "143 kept" in text, "three groups, and the third of 420 rows that passes the filter"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (Options(join="lazy-hash", tau=5_000_000), "Re-executed at multiples of 5 SECONDS"),
        (Options("time-probing", probe=1_500_000), "Probed at multiples of 1500 MILLISECONDS"),
        (Options("piggyback", patience=20_000_000), "A time waits for a row for at most 20 SECONDS"),
    ],
)
@pytest.mark.parametrize("window", ["RANGE 1 MINUTE", "ROWS 9"])
def test_intervals_of_a_strategy_are_shown(window: str, options: Options, line: str) -> None:
    catalog = Catalog({name: StreamEntry(name, SALES, "ts") for name in ("sales", "returns", "orders")})
    sql = (
        f"SELECT a.price FROM sales [{window}] AS a JOIN returns [{window}] AS b ON a.item_id = b.item_id "
        f"JOIN orders [{window}] AS c ON c.item_id = b.item_id"
    )
    assert f"\n  {line}\n" in plan_query(sql, catalog, options=options).explain()
    assert " multiples of " not in plan_query(sql, catalog).explain()


@pytest.mark.parametrize("name", QUERIES)
def test_every_operator_and_leg_is_shown(name: str) -> None:
    plan = planned(name)
    text = plan.explain()
    for stage in plan.physical.stages:
        assert f"Stage {stage.index}, " in text
    for index in range(len(plan.physical.legs)):
        assert f"Leg {index}: " in text
        assert f"Leg {index}, a " in text


def test_a_disabled_rule_does_not_fire() -> None:
    sql = QUERIES["distinct_join"]
    catalog = Catalog({name: StreamEntry(name, SALES, "ts") for name in ("sales", "returns")})
    assert "push_distinct_below_join" in plan_query(sql, catalog).explain()
    without = plan_query(sql, catalog, disable={"push_distinct_below_join"}).explain()
    assert "push_distinct_below_join" not in without
    assert without.split("Strategy")[0].count("Distinct") == 2  # once in the logical plan, once in the physical one


if __name__ == "__main__":
    for written in QUERIES:
        (GOLDEN / f"{written}.txt").write_text(planned(written).explain(), encoding="utf-8")
    for written in EVERYTHING:
        (GOLDEN / f"{written}.txt").write_text(planned(written).explain(all=True), encoding="utf-8")


@pytest.mark.parametrize(
    ("call", "remark"),
    [
        ("SUM(x) OVER (PARTITION BY k)", "(sum: evaluates the whole partition when its value has changed)"),
        ("PERCENT_RANK() OVER (ORDER BY x)", "(percent_rank: evaluates the whole partition at a change)"),
        ("ROW_NUMBER() OVER (ORDER BY x)", "(row_number: evaluates the rows behind a change)"),
        ("NTILE(4) OVER (ORDER BY x)", "(ntile: evaluates the rows at the borders of buckets)"),
        ("SUM(x) OVER (ORDER BY x)", "(sum: evaluates the rows behind a change)"),
        (
            "COUNT(x) OVER (ORDER BY x ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
            "(count: evaluates the rows before a change)",
        ),
        ("SUM(x) OVER (ORDER BY x ROWS 9 PRECEDING)", ""),
        ("MAX(x) OVER (ORDER BY x)", ""),
        ("LAG(x) OVER (ORDER BY x)", ""),
    ],
)
def test_window_functions_that_evaluate_more_than_a_frame_are_named(call: str, remark: str) -> None:
    catalog = Catalog()
    catalog.add_stream("s", parse_schema("ts BIGINT, k INT, x DOUBLE"), "ts")
    lines = plan_query(f"SELECT {call} AS c FROM s WINDOW 9 SECONDS", catalog).explain().splitlines()
    (line,) = [line for line in lines[lines.index("") :] if " Over " in line and "[fifo]" in line]
    assert ("evaluates" in line) == bool(remark)
    assert remark in line
