from __future__ import annotations

from typing import Any

import pytest

from sash.planning import plan_query
from sash.sql import parse_query
from sash.testing import replay
from tests.sql.plans import catalog, columns, tree

SALES = "Stream sales UNBOUNDED"
ROWS = [
    {"ts": 1, "k": "b", "v": 2},
    {"ts": 1, "k": None, "v": 3},
    {"ts": 2, "k": "a", "v": None},
    {"ts": 2, "k": "a", "v": 1},
]


def order_of(text: str) -> list[str]:
    query = parse_query(text, catalog())
    names = [column.name for column in query.plan.schema]
    return [names[key.column] + (" DESC" if key.descending else "") for key in query.order]


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("SELECT item, qty FROM sales ORDER BY qty DESC, item", ["qty DESC", "item"]),
        ("SELECT item, qty FROM sales ORDER BY 2", ["qty"]),
        ("SELECT item, qty AS q FROM sales ORDER BY q", ["q"]),
        ("SELECT item, qty FROM sales ORDER BY ALL", ["item", "qty"]),
        ("SELECT item, qty FROM sales ORDER BY ALL DESC", ["item DESC", "qty DESC"]),
        ("SELECT item AS all, qty FROM sales ORDER BY ALL", ["all"]),
        ("SELECT item, qty FROM sales ORDER BY item, name, qty", ["item"]),
        ("SELECT item, qty FROM sales ORDER BY qty LIMIT 3", ["qty"]),
        ("SELECT item, count(*) AS n FROM sales GROUP BY item ORDER BY count(*) DESC", ["n DESC"]),
        ("SELECT DISTINCT item, qty FROM sales ORDER BY qty", ["qty"]),
        ("(SELECT item, qty FROM sales ORDER BY qty)", ["qty"]),
        ("SELECT item FROM sales UNION ALL SELECT item FROM clicks ORDER BY item DESC", ["item DESC"]),
        ("SELECT item FROM (SELECT item FROM sales ORDER BY item)", []),
    ],
)
def test_order_in_which_rows_are_shown(query: str, order: list[str]) -> None:
    assert order_of(query) == order


def test_an_order_without_a_limit_does_not_change_the_plan() -> None:
    assert tree("SELECT item FROM sales ORDER BY qty, upper(name)") == ["Project item", "  " + SALES]
    assert tree("SELECT item FROM (SELECT item FROM sales ORDER BY qty) ORDER BY item") == [
        "Project item",
        "  " + SALES,
    ]


@pytest.mark.parametrize(
    ("clause", "node"),
    [
        ("LIMIT 0", "TopK [] 0"),
        ("LIMIT (1 + 2) * 2 - 1", "TopK [] 5"),
        ("LIMIT CAST('3' AS INT)", "TopK [] 3"),
        ("LIMIT CAST(3 AS BIGINT) OFFSET 1 + 1", "TopK [] 3 after 2"),
        ("OFFSET 2", "TopK [] 2147483647 after 2"),
        ("LIMIT ALL OFFSET 2", "TopK [] 2147483647 after 2"),
        ("LIMIT ALL", "Project item"),
    ],
)
def test_limits(clause: str, node: str) -> None:
    assert tree(f"SELECT item FROM sales {clause}")[0] == node


def test_the_limit_of_parentheses_goes_by_the_order_in_them() -> None:
    assert tree("(SELECT item, qty FROM sales ORDER BY qty DESC) LIMIT 2")[0] == "TopK [qty DESC] 2"


def test_distinct_may_be_ordered_by_what_its_columns_make() -> None:
    assert tree("SELECT DISTINCT item FROM sales ORDER BY -item LIMIT 2") == [
        "Project item",
        "  TopK [_order1] 2",
        "    Project item, -item AS _order1",
        "      Distinct",
        "        Project item",
        "          " + SALES,
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT item, qty AS Item FROM sales", ["item", "Item_2"]),
        ("SELECT item, item, item FROM sales", ["item", "item_2", "item_3"]),
        ("SELECT item, item, qty AS ITEM_2 FROM sales", ["item", "item_3", "ITEM_2"]),
        ("SELECT item AS a, qty AS a_2, item AS A, item AS a FROM sales", ["a", "a_2", "A_3", "a_4"]),
        ("SELECT item AS a, item AS a_2, item AS a, item AS a_2 FROM sales", ["a", "a_2", "a_3", "a_2_2"]),
        ("SELECT clicks.*, items.* FROM clicks JOIN items ON TRUE", ["ts", "item", "user", "item_2", "label"]),
    ],
)
def test_output_columns_of_one_name_are_named_apart(query: str, names: list[str]) -> None:
    assert [column.split()[0] for column in columns(query)] == names


def test_columns_of_a_subquery_keep_their_names() -> None:
    assert [
        column.split()[0]
        for column in columns("SELECT * FROM (SELECT item, item, item_2 FROM (SELECT item, qty AS item_2 FROM sales))")
    ] == [
        "item",
        "item_3",
        "item_2",
    ]


def shown(query: str, at: int = 2) -> list[tuple[Any, ...]]:
    result = replay(query, {"s": ROWS}, unit="s")
    assert result.to_arrow(at=at).to_pylist() == result.at(at)
    return [tuple(row.values()) for row in result.at(at)]


def test_a_replay_shows_rows_in_the_order_of_the_query() -> None:
    assert shown("SELECT k, v FROM s [RANGE 1 MINUTE] ORDER BY v DESC") == [(None, 3), ("b", 2), ("a", 1), ("a", None)]
    assert shown("SELECT k, v FROM s [RANGE 1 MINUTE] ORDER BY k NULLS LAST, v") == [
        *(("a", None), ("a", 1), ("b", 2), (None, 3)),
    ]
    assert shown("SELECT k, v FROM s [RANGE 1 SECOND] ORDER BY v LIMIT 1") == [("a", None)]


def test_offset_without_limit_and_limits_of_nothing() -> None:
    assert shown("SELECT v FROM s [RANGE 1 MINUTE] ORDER BY v OFFSET 2") == [(2,), (3,)]
    assert shown("SELECT v FROM s [RANGE 1 MINUTE] LIMIT 0") == []
    assert shown("SELECT v FROM s [RANGE 1 MINUTE] ORDER BY v LIMIT ALL") == [(None,), (1,), (2,), (3,)]


def test_explain_names_the_order() -> None:
    text = plan_query("SELECT item, qty FROM sales ORDER BY qty DESC, item", catalog()).explain()
    assert "Order of rows, where the answer is shown (its changes have none)\n  qty DESC, item\n" in text
    assert "Order of rows" not in plan_query("SELECT item FROM sales", catalog()).explain()
