"""Subqueries: the joins that they become, the names of their columns, and what is wrong with them."""

from __future__ import annotations

import pytest

from sash.errors import EvaluationError, SqlSyntaxError, TypeMismatchError, UnknownNameError, UnsupportedSqlError
from sash.plan.nodes import Aggregate, Distinct, Join, Node, walk
from sash.testing import replay
from tests.sql.plans import columns, plan_of, tree

SALES, CLICKS = "Stream sales UNBOUNDED", "Stream clicks UNBOUNDED"


def joins(text: str) -> list[str]:
    """The joins of a plan, each as its kind and its number of keys, and whether it has a condition."""
    found = [node for node in walk(plan_of(text)) if isinstance(node, Join)]
    return [f"{node.kind} {len(node.keys)}{'' if node.condition is None else ' if'}" for node in found]


def test_exists_is_a_semi_join_on_its_equalities() -> None:
    assert tree(
        "SELECT item FROM sales s WHERE EXISTS (SELECT 1 FROM clicks c WHERE c.item = s.item AND user > 'm')"
    ) == [
        "Project item",
        "  Join semi item#1=item#1",
        "    " + SALES,
        "    Filter user > 'm'",
        "      " + CLICKS,
    ]


def test_not_in_is_three_anti_joins_with_keys() -> None:
    text = "SELECT item FROM sales s WHERE item NOT IN (SELECT item FROM clicks c WHERE c.user = s.name)"
    assert joins(text) == ["anti 2", "anti 1", "anti 2"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("qty > (SELECT AVG(c.item) FROM clicks c)", ["semi 0 if"]),
        ("NOT (SELECT MIN(item) FROM clicks c) > item", ["semi 0 if"]),
        ("item = (SELECT MAX(item) FROM clicks c)", ["semi 1"]),
        (
            "item BETWEEN (SELECT MIN(item) FROM clicks c) AND (SELECT MAX(item) FROM clicks c)",
            ["semi 0 if", "semi 0 if"],
        ),
        ("item > (SELECT MAX(item) FROM clicks c) - 1", ["inner 0"]),
        ("item > (SELECT MAX(item) FROM clicks c WHERE c.user = s.name)", ["inner 1"]),
        ("item > (SELECT MAX(item) FROM clicks c) OR qty > 3", ["inner 0"]),
    ],
)
def test_comparisons_with_a_scalar_are_semi_joins(condition: str, expected: list[str]) -> None:
    """Not those whose scalar side may fail, which matters only where there are rows."""
    assert joins(f"SELECT item FROM sales s WHERE {condition}") == expected


def test_not_in_of_constants_needs_no_test_for_null() -> None:
    assert joins("SELECT item FROM sales WHERE 1 NOT IN (SELECT 2 FROM clicks)") == ["anti 0 if"]


def test_not_in_without_nulls_is_one_anti_join() -> None:
    text = (
        "SELECT item FROM sales WHERE item IS NOT NULL AND item NOT IN (SELECT item FROM clicks WHERE item IS NOT NULL)"
    )
    assert joins(text) == ["anti 1"]


def test_a_correlated_aggregate_is_computed_once_for_each_key() -> None:
    text = "SELECT (SELECT max(c.ts) FROM clicks c WHERE c.item = s.item) AS m FROM sales s"
    assert joins(text) == ["left 1"]
    (aggregate,) = [node for node in walk(plan_of(text)) if isinstance(node, Aggregate)]
    assert [aggregate.child.schema[key].name for key in aggregate.keys] == ["item"]
    assert not any(isinstance(node, Distinct) for node in walk(plan_of(text)))


def test_a_comparison_with_a_correlated_aggregate_is_an_inner_join() -> None:
    text = "SELECT item FROM sales s WHERE qty > (SELECT {} FROM clicks c WHERE c.item = s.item)"
    assert joins(text.format("max(item) + 1")) == ["inner 1"]
    assert joins(text.format("count(*)")) == ["left 1"]
    assert joins(text.format("coalesce(max(item), 0)")) == ["left 1"]
    assert joins("SELECT item FROM sales s WHERE (SELECT max(item) FROM clicks c WHERE c.item = s.item) IS NULL") == [
        "left 1"
    ]


def test_a_collection_of_no_rows_is_empty() -> None:
    text = "SELECT a.k, (SELECT COLLECT_LIST(v) FROM r [RANGE 5 SECONDS] AS b WHERE b.k = a.k) AS v FROM s [RANGE 5 SECONDS] AS a"
    rows = replay(text, streams=ROWS, unit="s", until=4).at(2)
    assert {row["k"]: row["v"] for row in rows} == {1: [5], 2: []}


def test_an_unequal_correlation_is_evaluated_for_the_distinct_outer_values() -> None:
    plan = plan_of("SELECT (SELECT count(*) FROM clicks c WHERE c.item < s.item) AS n FROM sales s")
    domains = [node for node in walk(plan) if isinstance(node, Distinct)]
    assert [[field.name for field in node.schema] for node in domains] == [["item"]]


def test_a_subquery_that_is_used_twice_is_joined_once() -> None:
    text = "SELECT (SELECT max(item) FROM clicks) AS a, (SELECT max(item) FROM clicks) + 1 AS b FROM sales"
    assert joins(text) == ["inner 0"]


def test_a_condition_below_or_needs_no_null() -> None:
    assert joins("SELECT item FROM sales WHERE qty > 3 OR item IN (SELECT item FROM clicks)") == ["left 1"]
    assert len(joins("SELECT item FROM sales WHERE NOT (qty > 3 OR item IN (SELECT item FROM clicks))")) == 3


def test_names_are_those_of_spark() -> None:
    text = (
        "SELECT (SELECT max(item) FROM clicks), (SELECT max(c.item) FROM clicks c WHERE c.user = s.name), "
        "EXISTS (SELECT 1 FROM clicks), item IN (SELECT item FROM clicks) FROM sales s"
    )
    assert columns(text) == [
        "scalarsubquery() INT",
        "scalarsubquery(name) INT",
        "exists() BOOLEAN",
        "(item IN (listquery())) BOOLEAN",
    ]


def test_names_of_the_subquery_come_first() -> None:
    plan = plan_of("SELECT item FROM sales WHERE EXISTS (SELECT 1 FROM clicks WHERE item = 1)")
    assert [node.kind for node in walk(plan) if isinstance(node, Join)] == ["semi"]
    assert [node.keys for node in walk(plan) if isinstance(node, Join)] == [()]


def test_the_trailing_window_applies_to_subqueries() -> None:
    lines = tree("SELECT item FROM sales WHERE item IN (SELECT item FROM clicks) WINDOW 1 SECOND")
    assert [line.strip() for line in lines if "Stream" in line] == [
        "Stream sales RANGE 1000000",
        "Stream clicks RANGE 1000000",
    ]


@pytest.mark.parametrize(
    ("query", "kind", "message", "column"),
    [
        ("SELECT (SELECT item, user FROM clicks) FROM sales", TypeMismatchError, "one column, not 2", 16),
        ("SELECT item FROM sales WHERE item IN (SELECT * FROM clicks)", TypeMismatchError, "a subquery of 3", 30),
        ("SELECT item FROM sales WHERE (item, qty) IN (SELECT item FROM clicks)", TypeMismatchError, "2 columns", 31),
        ("SELECT item FROM sales WHERE ts IN (SELECT item FROM clicks)", TypeMismatchError, "cannot be compared", 30),
        ("SELECT item FROM sales WHERE qty > ALL (SELECT ts FROM clicks)", TypeMismatchError, "cannot be compared", 30),
        ("SELECT item FROM sales WHERE EXISTS (SELECT 1 FROM clicks WHERE items = 1)", UnknownNameError, "items", 65),
        (
            "SELECT count(*) FROM sales s GROUP BY item HAVING EXISTS (SELECT 1 FROM clicks c WHERE c.user = s.name)",
            UnsupportedSqlError,
            "neither in GROUP BY",
            66,
        ),
    ],
)
def test_errors_have_positions(query: str, kind: type[SqlSyntaxError], message: str, column: int) -> None:
    with pytest.raises(kind, match=message) as caught:
        plan_of(query)
    assert (caught.value.line, caught.value.column) == (1, column)


ROWS = {"s": [{"ts": 1, "k": 1}, {"ts": 2, "k": 2}], "r": [{"ts": 1, "k": 1, "v": 5}, {"ts": 3, "k": 1, "v": 6}]}


@pytest.mark.parametrize("where", ["", " WHERE b.k = a.k"])
def test_two_rows_of_a_scalar_subquery_fail(where: str) -> None:
    text = f"SELECT a.ts, (SELECT v FROM r [RANGE 5 SECONDS] AS b{where}) AS v FROM s [RANGE 5 SECONDS] AS a"
    with pytest.raises(EvaluationError, match="a scalar subquery has 2 rows"):
        replay(text, streams=ROWS, unit="s", until=9)


@pytest.mark.parametrize("where", ["", " WHERE b.k = a.k"])
@pytest.mark.parametrize("shards", [1, 3])
def test_rows_of_a_scalar_subquery_are_counted_after_all_changes_of_an_instant(where: str, shards: int) -> None:
    text = f"SELECT a.ts, (SELECT v FROM r [RANGE 2 SECONDS] AS b{where}) AS v FROM s [RANGE 9 SECONDS] AS a"
    result = replay(text, streams=ROWS, unit="s", until=12, shards=shards, batch=1)
    values = {at: {row["ts"]: row["v"] for row in result.at(at)} for at in (2, 3, 5)}
    other = None if where else 1
    assert values == {2: {1: 5, 2: other and 5}, 3: {1: 6, 2: other and 6}, 5: {1: None, 2: None}}


def test_two_rows_for_a_key_that_no_outer_row_has_do_not_fail() -> None:
    rows = {"s": [{"ts": 1, "k": 2}], "r": [{"ts": 1, "k": 1, "v": 5}, {"ts": 1, "k": 1, "v": 6}]}
    text = "SELECT a.ts, (SELECT v FROM r [NOW] AS b WHERE b.k = a.k) AS v FROM s [RANGE 9 SECONDS] AS a"
    assert replay(text, streams=rows, unit="s", until=5).at(1) == [{"ts": 1, "v": None}]


def _size(node: Node) -> int:
    return 1 + sum(map(_size, node.children))


def test_many_subqueries_make_a_plan_of_linear_size() -> None:
    text = "(SELECT count(*) FROM clicks c WHERE c.item < s.item + {}) AS n{}"
    sizes = [
        _size(plan_of(f"SELECT {', '.join(text.format(n, n) for n in range(count))} FROM sales s"))
        for count in (1, 2, 9)
    ]
    assert sizes[2] - sizes[0] == 8 * (sizes[1] - sizes[0])


def _height(node: Node) -> int:
    return 1 + max(map(_height, node.children), default=0)


def test_many_subqueries_are_bound_in_linear_depth() -> None:
    conditions = " AND ".join(f"item + {n} IN (SELECT item FROM clicks)" for n in range(20))
    assert _height(plan_of(f"SELECT item FROM sales WHERE {conditions}")) < 100


GENERATED = {
    "SELECT v FROM s WHERE v IN (SELECT explode(array(s.k, 3)))": [(3,)],
    "SELECT v, (SELECT MAX(x) FROM (SELECT explode(array(s.v, 3)) AS x)) AS m FROM s": [(2, 3), (3, 3), (4, 4)],
    "SELECT v, (SELECT SUM(x) FROM explode(array(s.v, s.k)) AS t(x)) AS m FROM s": [(2, 2), (3, 4), (4, 6)],
    "SELECT v FROM s WHERE EXISTS (SELECT x FROM r LATERAL VIEW explode(array(r.w, 1)) t AS x WHERE x = s.v)": [
        (2,),
        (3,),
    ],
    "SELECT s.v, t.x FROM s, LATERAL (SELECT explode(sequence(0, s.v)) AS x) t WHERE t.x > 2": [(3, 3), (4, 3), (4, 4)],
    "SELECT v, (SELECT COUNT(*) FROM r, LATERAL explode(array(r.w, s.v)) AS t(x) WHERE x > 2) AS n FROM s": [
        (2, 1),
        (3, 3),
        (4, 3),
    ],
}


@pytest.mark.parametrize("sql", GENERATED)
def test_generators_in_correlated_subqueries(sql: str) -> None:
    streams = {
        "s": [{"ts": ts, "k": ts % 3, "v": ts % 7} for ts in range(1, 12)],
        "r": [{"ts": ts, "w": ts % 7} for ts in range(1, 11)],
    }
    schemas = {"s": "ts BIGINT, k INT, v INT", "r": "ts BIGINT, w INT"}
    result = replay(f"{sql} WINDOW 3 SECONDS", streams, schemas=schemas, unit="s", until=20)
    assert sorted(tuple(row.values()) for row in result.at(11)) == GENERATED[sql]
    assert result.at(14) == []
