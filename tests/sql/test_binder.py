from __future__ import annotations

import pytest

from sash.plan.nodes import Stream, walk
from tests.sql.plans import columns, plan_of, tree

SALES = "Stream sales UNBOUNDED"
CLICKS = "Stream clicks UNBOUNDED"
EVERY_SALE = "ts, item, price, qty, name, weight"


@pytest.mark.parametrize("query", ["SELECT * FROM sales", "SELECT s.* FROM sales s", "(((SELECT * FROM SALES)))"])
def test_all_columns_need_no_projection(query: str) -> None:
    assert tree(query) == [SALES]


def test_select_where() -> None:
    assert tree("SELECT qty + 1 AS q, upper(name) u FROM sales WHERE price > 4 AND name LIKE 'a%'") == [
        "Project qty + 1 AS q, upper(name) AS u",
        "  Filter price > 4 AND name LIKE 'a%'",
        "    " + SALES,
    ]


def test_subqueries_and_ctes_are_inlined() -> None:
    assert tree(
        "WITH a AS (SELECT item AS k FROM sales WHERE qty > 1) SELECT k FROM (SELECT k FROM a) b WHERE k < 9"
    ) == [
        "Filter k < 9",
        "  Project item AS k",
        "    Filter qty > 1",
        "      " + SALES,
    ]


def test_one_cte_used_twice_and_hiding_a_stream() -> None:
    plan = plan_of(
        "WITH clicks(k) AS (SELECT item FROM sales [ROWS 1]) SELECT a.k FROM clicks a JOIN clicks b ON a.k = b.k"
    )
    assert [node.name for node in walk(plan) if isinstance(node, Stream)] == ["sales", "sales"]


def test_a_cte_is_seen_by_the_next_and_inside_subqueries() -> None:
    text = "WITH a AS (SELECT item FROM sales), b AS (SELECT item + 1 AS j FROM a) SELECT j FROM (SELECT * FROM b) x"
    assert columns(text) == ["j INT"]


def test_group_by_plain_columns() -> None:
    assert tree("SELECT item, SUM(price) AS total, COUNT(*) FROM sales GROUP BY item") == [
        "Project item, sum(price) AS total, count(1)",
        "  Aggregate [item] sum(price), count(*)",
        "    " + SALES,
    ]


def test_group_by_expressions_are_computed_below() -> None:
    assert tree("SELECT upper(name) AS n, avg(qty + 1) + 1 AS a FROM sales GROUP BY upper(name)") == [
        "Project upper(name) AS n, avg((qty + 1)) + 1.0 AS a",
        "  Aggregate [upper(name)] avg(qty + 1)",
        "    Project upper(name), qty + 1",
        "      " + SALES,
    ]


@pytest.mark.parametrize("key", ["1", "k", "item % 3", "ALL"])
def test_group_by_ordinal_alias_expression_or_all(key: str) -> None:
    assert tree(f"SELECT item % 3 AS k, count(*) AS n FROM sales GROUP BY {key}") == [
        "Project item % 3 AS k, count(1) AS n",
        "  Aggregate [item % 3] count(*)",
        "    Project item % 3",
        "      " + SALES,
    ]


def test_group_by_prefers_columns_to_aliases() -> None:
    assert "  Aggregate [qty]" in tree("SELECT -qty AS qty FROM sales GROUP BY qty")


def test_group_by_without_aggregates_and_distinct() -> None:
    assert tree("SELECT item FROM sales GROUP BY item, qty") == [
        "Project item",
        "  Aggregate [item, qty]",
        "    " + SALES,
    ]
    assert tree("SELECT DISTINCT item FROM sales") == ["Distinct", "  Project item", "    " + SALES]


def test_having_may_use_other_aggregates_and_aliases() -> None:
    text = "SELECT item, count(*) AS n FROM sales GROUP BY item HAVING n > 1 AND max(qty) < 9"
    assert tree(text) == [
        "Project item, count(1) AS n",
        "  Filter count(1) > 1 AND max(qty) < 9",
        "    Aggregate [item] count(*), max(qty)",
        "      " + SALES,
    ]


def test_having_prefers_an_alias_to_a_column_that_is_not_grouped() -> None:
    text = "SELECT item, sum(qty) AS qty FROM sales GROUP BY item HAVING qty > 3 AND max(qty) < 9"
    assert tree(text)[1] == "  Filter sum(qty) > 3 AND max(qty) < 9"
    text = "SELECT item, -item AS item FROM sales GROUP BY item HAVING item > 3"
    assert tree(f"SELECT 1 AS one FROM ({text}) x")[2] == "    Filter item > 3"


def test_having_without_group_by_is_a_global_aggregate() -> None:
    assert tree("SELECT 1 AS one FROM sales HAVING count(*) > 3") == [
        "Project 1 AS one",
        "  Filter count(1) > 3",
        "    Aggregate [] count(*)",
        "      " + SALES,
    ]


def test_the_same_aggregate_is_computed_once() -> None:
    assert "  Aggregate [] sum(qty), count(*)" in tree("SELECT sum(qty) / count(*) AS a, sum(s.qty) AS b FROM sales s")


@pytest.mark.parametrize(
    ("written", "aggregate", "input_"),
    [
        ("count(1)", "count(*)", None),
        ("count(qty)", "count(qty)", None),
        ("count(DISTINCT name)", "count(DISTINCT name)", None),
        ("sum(DISTINCT qty)", "sum(DISTINCT qty)", None),
        ("max(DISTINCT qty)", "max(qty)", None),
        ("mean(qty)", "avg(qty)", None),
        ("variance(weight)", "var_samp(weight)", None),
        ("std(weight)", "stddev_samp(weight)", None),
        ("any_value(name)", "first(name)", None),
        ("last_value(name)", "last(name)", None),
        ("min_by(name, qty)", "min_by(name, qty)", None),
        ("percentile(weight, 0.25)", "percentile(weight, 0.25)", None),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY weight)", "percentile(weight, 0.5)", None),
        ("median(qty)", "median(cast(qty AS DOUBLE))", "cast(qty AS DOUBLE)"),
        ("count_if(qty > 2)", "count(CASE WHEN qty > 2 THEN 1 END)", "CASE WHEN qty > 2 THEN 1 END"),
        ("sum(qty) FILTER (WHERE item = 1)", "sum(CASE WHEN item = 1 THEN qty END)", "CASE WHEN item = 1 THEN qty END"),
        ("count(*) FILTER (WHERE item = 1)", "count(CASE WHEN item = 1 THEN 1 END)", "CASE WHEN item = 1 THEN 1 END"),
        (
            "count(qty, name)",
            "count(CASE WHEN qty IS NOT NULL AND name IS NOT NULL THEN 1 END)",
            "CASE WHEN qty IS NOT NULL AND name IS NOT NULL THEN 1 END",
        ),
    ],
)
def test_aggregates(written: str, aggregate: str, input_: str | None) -> None:
    below = [f"    Project {input_}", "      " + SALES] if input_ else ["    " + SALES]
    assert tree(f"SELECT {written} AS x FROM sales")[1:] == [f"  Aggregate [] {aggregate}", *below]


def test_inner_join_keys_and_condition() -> None:
    assert tree(
        "SELECT label FROM sales s JOIN items i ON s.item = i.item AND s.qty > 3 AND length(label) < s.qty"
    ) == [
        "Project label",
        "  Join inner item#1=item#0 IF qty > 3 AND cast(length(label) AS BIGINT) < qty",
        "    " + SALES,
        "    Relation items",
    ]


def test_join_keys_that_are_expressions_or_of_two_types_are_appended_and_dropped() -> None:
    assert tree("SELECT s.qty, v.seen FROM sales s FULL OUTER JOIN views v ON s.item = v.item") == [
        "Project qty, seen",
        "  Join full _key1#6=item#0",
        f"    Project {EVERY_SALE}, cast(item AS BIGINT) AS _key1",
        "      " + SALES,
        "    Stream Views UNBOUNDED",
    ]
    assert tree("SELECT c.user FROM clicks c LEFT JOIN items i ON c.item + 1 = i.item * 2 AND c.item > i.item")[1:] == [
        "  Join left _key1#3=_key1#2 IF item > item",
        "    Project ts, item, user, item + 1 AS _key1",
        "      " + CLICKS,
        "    Project item, label, item * 2 AS _key1",
        "      Relation items",
    ]


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("JOIN", "inner"),
        ("INNER JOIN", "inner"),
        ("LEFT JOIN", "left"),
        ("LEFT OUTER JOIN", "left"),
        ("RIGHT JOIN", "right"),
        ("RIGHT OUTER JOIN", "right"),
        ("FULL JOIN", "full"),
        ("FULL OUTER JOIN", "full"),
        ("LEFT SEMI JOIN", "semi"),
        ("SEMI JOIN", "semi"),
        ("LEFT ANTI JOIN", "anti"),
        ("ANTI JOIN", "anti"),
    ],
)
def test_kinds_of_joins(written: str, kind: str) -> None:
    query = f"SELECT s.qty FROM sales s {written} clicks c ON s.item = c.item"
    assert tree(query)[1] == f"  Join {kind} item#1=item#1"


def test_comma_join_takes_its_keys_from_where() -> None:
    text = """
        SELECT s.qty FROM sales s, clicks c, items i
        WHERE s.item = c.item AND c.item = i.item AND s.qty > 3 AND s.ts < c.ts
    """
    assert tree(text) == [
        "Project qty",
        "  Filter qty > 3",
        "    Join inner item#7=item#0",
        "      Join inner item#1=item#1 IF ts < ts",
        "        " + SALES,
        "        " + CLICKS,
        "      Relation items",
    ]


def test_where_does_not_reach_into_an_outer_join() -> None:
    assert tree("SELECT s.qty FROM sales s LEFT JOIN items i ON TRUE WHERE s.item = i.item")[1:3] == [
        "  Filter item = item",
        "    Join left",
    ]


def test_cross_join_and_join_of_joins() -> None:
    assert tree("SELECT s.qty FROM sales s CROSS JOIN items")[1] == "  Join inner"
    text = "SELECT s.qty FROM sales s JOIN (clicks c JOIN items i ON c.item = i.item) ON s.item = c.item"
    assert tree(text) == [
        "Project qty",
        "  Join inner item#1=item#1",
        "    " + SALES,
        "    Join inner item#1=item#0",
        "      " + CLICKS,
        "      Relation items",
    ]


@pytest.mark.parametrize(
    ("join", "item"), [("JOIN", "item"), ("LEFT JOIN", "item"), ("FULL JOIN", "coalesce(item, item) AS item")]
)
def test_using_merges_the_columns(join: str, item: str) -> None:
    assert tree(f"SELECT * FROM items {join} rates USING (item)")[0] == f"Project {item}, label, rate"
    assert columns(f"SELECT item, i.item AS a, r.item AS b FROM items i {join} rates r USING (ITEM)") == [
        "item INT",
        "a INT",
        "b INT",
    ]


def test_right_join_using_gives_the_right_column() -> None:
    plan = plan_of("SELECT item FROM items RIGHT JOIN rates USING (item)")
    assert plan.expressions[0].index == 2  # type: ignore[union-attr]


def test_natural_join() -> None:
    assert tree("SELECT * FROM items NATURAL JOIN rates") == [
        "Project item, label, rate",
        "  Join inner item#0=item#0",
        "    Relation items",
        "    Relation rates",
    ]


def test_using_in_a_chain() -> None:
    assert tree("SELECT * FROM items JOIN rates USING (item) JOIN clicks USING (item)")[:2] == [
        "Project item, label, rate, ts, user",
        "  Join inner item#0=item#1",
    ]


def test_set_operators_and_their_precedence() -> None:
    text = "SELECT item FROM sales UNION SELECT item FROM clicks INTERSECT ALL SELECT item FROM items"
    assert tree(text) == [
        "Distinct",
        "  Union",
        "    Project item",
        "      " + SALES,
        "    Intersect ALL",
        "      Project item",
        "        " + CLICKS,
        "      Project item",
        "        Relation items",
    ]


@pytest.mark.parametrize(
    ("written", "node"),
    [
        ("UNION ALL", "Union"),
        ("UNION DISTINCT", "Distinct"),
        ("EXCEPT", "Except"),
        ("EXCEPT DISTINCT", "Except"),
        ("EXCEPT ALL", "Except ALL"),
        ("MINUS", "Except"),
        ("MINUS ALL", "Except ALL"),
        ("INTERSECT", "Intersect"),
        ("INTERSECT ALL", "Intersect ALL"),
    ],
)
def test_set_operators(written: str, node: str) -> None:
    assert tree(f"SELECT item FROM sales {written} SELECT item FROM clicks")[0] == node


def test_except_leans_to_the_left() -> None:
    text = "SELECT item FROM sales EXCEPT SELECT item FROM clicks EXCEPT SELECT item FROM items"
    assert tree(text)[:2] == ["Except", "  Except"]


def test_set_operators_bring_both_sides_to_one_type() -> None:
    assert tree("SELECT item, name FROM sales UNION ALL SELECT item, 'x' FROM views") == [
        "Union",
        "  Project cast(item AS BIGINT) AS item, name",
        "    " + SALES,
        "  Project item, 'x' AS x",
        "    Stream Views UNBOUNDED",
    ]
    assert columns("SELECT item AS k FROM sales UNION SELECT item FROM views") == ["k BIGINT"]


def test_order_by_and_limit() -> None:
    assert tree("SELECT item, qty AS q FROM sales ORDER BY q DESC, 1 LIMIT 3 OFFSET 2") == [
        "TopK [q DESC, item] 3 after 2",
        "  Project item, qty AS q",
        "    " + SALES,
    ]
    assert tree("SELECT item FROM sales LIMIT 5") == ["TopK [] 5", "  Project item", "    " + SALES]
    assert tree("SELECT item FROM sales ORDER BY item DESC NULLS FIRST LIMIT 1")[0] == "TopK [item DESC NULLS FIRST] 1"


def test_order_by_hidden_columns() -> None:
    assert tree("SELECT item FROM sales ORDER BY qty * 2, item LIMIT 3") == [
        "Project item",
        "  TopK [_order1, item] 3",
        "    Project item, qty * 2 AS _order1",
        "      " + SALES,
    ]
    assert tree("SELECT item FROM sales GROUP BY item ORDER BY sum(qty) DESC LIMIT 3") == [
        "Project item",
        "  TopK [_order1 DESC] 3",
        "    Project item, sum(qty) AS _order1",
        "      Aggregate [item] sum(qty)",
        "        " + SALES,
    ]


def test_order_by_of_a_set_operator() -> None:
    text = "SELECT item FROM sales UNION ALL SELECT item FROM clicks ORDER BY -item LIMIT 2"
    assert tree(text)[:4] == ["Project item", "  TopK [_order1] 2", "    Project item, -item AS _order1", "      Union"]


def test_limit_inside_parentheses_stays_there() -> None:
    text = "(SELECT item FROM sales LIMIT 2) UNION ALL (SELECT item FROM clicks) LIMIT 3"
    assert tree(text)[:3] == ["TopK [] 3", "  Union", "    TopK [] 2"]


def test_a_select_item_may_use_the_alias_of_an_earlier_one() -> None:
    assert tree("SELECT qty + 1 AS a, a * 2 AS b FROM sales")[0] == "Project qty + 1 AS a, (qty + 1) * 2 AS b"


def test_output_names_are_those_of_spark() -> None:
    text = "SELECT s.Qty, sum(s.price), COUNT(*), max(item) + 1, count(DISTINCT name) FROM sales s GROUP BY qty"
    assert [field.name for field in plan_of(text).schema] == [
        "Qty",
        "sum(price)",
        "count(1)",
        "(max(item) + 1)",
        "count(DISTINCT name)",
    ]


def test_table_alias_renames_columns() -> None:
    assert columns("SELECT x.b FROM (SELECT item, name FROM sales) AS x(a, b)") == ["b STRING"]
    assert columns("SELECT c FROM items AS x(a, c)") == ["c STRING"]


def test_names_do_not_depend_on_case_and_streams_keep_their_own() -> None:
    assert tree("SELECT V.ITEM FROM VIEWS v") == ["Project item AS ITEM", "  Stream Views UNBOUNDED"]


def test_long_conditions_do_not_overflow_the_stack() -> None:
    text = " OR ".join(f"item = {i}" for i in range(300))
    assert tree(f"SELECT * FROM sales WHERE {text}")[1] == "  " + SALES
