from __future__ import annotations

import pytest

from sash.errors import SqlSyntaxError, UnknownNameError, UnsupportedSqlError, WindowError
from sash.plan.nodes import Range, Rows, Stream, Unbounded, Window, walk
from tests.sql.plans import plan_of

SECOND = 1_000_000


def windows(text: str) -> list[Window]:
    return [node.window for node in walk(plan_of(text)) if isinstance(node, Stream)]


@pytest.mark.parametrize(
    ("clause", "window"),
    [
        ("[RANGE 1 HOUR]", Range(3600 * SECOND)),
        ("[range 90 Minutes]", Range(5400 * SECOND)),
        ("[RANGE 1 HOUR SLIDE 1 MINUTE]", Range(3600 * SECOND, 60 * SECOND)),
        ("[RANGE 1.5 SECONDS]", Range(1_500_000)),
        ("[RANGE 0.001 milliseconds]", Range(1)),
        ("[RANGE 3 microseconds SLIDE 2 microsecond]", Range(3, 2)),
        ("[RANGE 2 days]", Range(172_800 * SECOND)),
        ("[RANGE 1 WEEK]", Range(604_800 * SECOND)),
        ("[RANGE INTERVAL 5 SECONDS]", Range(5 * SECOND)),
        ("[RANGE INTERVAL '5' SECONDS]", Range(5 * SECOND)),
        ("[RANGE UNBOUNDED]", Unbounded()),
        ("[NOW]", Range(1)),
        ("[ROWS 100]", Rows(100)),
        ("[PARTITION BY item ROWS 3]", Rows(3, (1,))),
        ("[PARTITION BY Item, name ROWS 3]", Rows(3, (1, 4))),
        ("", Unbounded()),
    ],
)
def test_window_after_the_name_of_a_stream(clause: str, window: Window) -> None:
    assert windows(f"SELECT qty FROM sales {clause}") == [window]


@pytest.mark.parametrize(
    "source", ["sales [ROWS 2] AS s", "sales [ROWS 2] s", "sales s [ROWS 2]", "sales AS s [ROWS 2]", "sales[ROWS 2]s"]
)
def test_alias_before_or_after_the_window(source: str) -> None:
    assert windows(f"SELECT s.qty FROM {source} WHERE s.qty > 1") == [Rows(2)]


def test_each_side_of_a_join_has_its_own_window() -> None:
    text = """
        SELECT s.qty FROM sales [ROWS 2] s JOIN clicks [RANGE 3 SECONDS] AS c ON s.item = c.item, views v [NOW]
    """
    assert windows(text) == [Rows(2), Range(3 * SECOND), Range(1)]


def test_trailing_window_is_for_every_stream_without_its_own() -> None:
    text = """
        WITH a AS (SELECT item FROM sales)
        SELECT item FROM a UNION ALL (SELECT item FROM (SELECT item FROM clicks [NOW]) x)
        UNION ALL SELECT v.item FROM views v LEFT SEMI JOIN items i ON v.item = i.item
        WINDOW 1 HOUR SLIDE 1 MINUTE;
    """
    hour = Range(3600 * SECOND, 60 * SECOND)
    assert windows(text) == [hour, Range(1), hour]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT qty FROM sales WINDOW 2 SECONDS",
        "(SELECT qty FROM sales) WINDOW 2 SECONDS",
        "SELECT qty FROM sales s WINDOW 2 SECONDS",
        "SELECT qty FROM sales WHERE qty > 1 WINDOW 2 SECONDS ;",
        "SELECT qty FROM sales GROUP BY qty WINDOW INTERVAL 2 SECONDS",
        "SELECT qty FROM sales GROUP BY qty HAVING count(*) > 1 WINDOW 2 SECONDS",
        "SELECT qty FROM sales ORDER BY qty LIMIT 3 WINDOW 2 SECONDS",
        "SELECT qty FROM sales LIMIT 3 OFFSET 1 WINDOW 2 SECONDS",
    ],
)
def test_trailing_window_stands_at_the_end_of_any_query(query: str) -> None:
    assert windows(query) == [Range(2 * SECOND)]


@pytest.mark.parametrize(
    ("query", "error", "message", "column"),
    [
        ("SELECT qty FROM sales [RANGE 0 SECONDS]", WindowError, "greater than 0", 30),
        ("SELECT qty FROM sales [RANGE -1 SECONDS]", WindowError, "greater than 0", 30),
        ("SELECT qty FROM sales [RANGE 5 SECONDS SLIDE 0 SECONDS]", WindowError, "greater than 0", 46),
        ("SELECT qty FROM sales [ROWS 0]", WindowError, "at least one row", 29),
        ("SELECT qty FROM sales WINDOW 0 HOURS", WindowError, "greater than 0", 30),
        ("SELECT qty FROM sales [RANGE 0.5 MICROSECONDS]", WindowError, "whole number of microseconds", 30),
        ("SELECT qty FROM sales [RANGE 99999999999 WEEKS]", WindowError, "64 bits", 30),
        ("SELECT item FROM items [ROWS 1]", WindowError, "items is a relation", 24),
        ("SELECT qty FROM (SELECT qty FROM sales) [NOW]", WindowError, "directly follow the name of a stream", 41),
        ("SELECT qty FROM (SELECT qty FROM sales) AS x [NOW]", WindowError, "x is a subquery", 46),
        ("WITH x AS (SELECT qty FROM sales) SELECT qty FROM x [NOW]", WindowError, "x is a subquery", 53),
        ("SELECT qty FROM sales [ROWS 1] s [ROWS 2]", WindowError, "two windows", 34),
        ("SELECT qty FROM sales [RANGE 5 SECNDS]", SqlSyntaxError, "did you mean second", 32),
        ("SELECT qty FROM sales [RANGE SECONDS]", SqlSyntaxError, "a number and a unit", 30),
        ("SELECT qty FROM sales [ROWS 1.5]", SqlSyntaxError, "whole number of rows", 29),
        ("SELECT qty FROM sales [LAST 5]", SqlSyntaxError, "RANGE, ROWS, PARTITION BY or NOW", 24),
        ("SELECT qty FROM sales [ROWS 5", SqlSyntaxError, "]", 29),
        ("SELECT qty FROM sales [PARTITION BY ROWS 5]", SqlSyntaxError, "PARTITION BY columns ROWS n", 42),
        ("SELECT qty FROM sales [PARTITION BY itm ROWS 5]", UnknownNameError, "did you mean item", 37),
        ("SELECT x FROM (SELECT qty AS x FROM sales WINDOW 1 HOUR)", SqlSyntaxError, "end of the query", 56),
        ("SELECT qty FROM sales WINDOW 1 HOUR WHERE qty > 1", SqlSyntaxError, "end of the query", 37),
    ],
)
def test_wrong_windows_are_named(query: str, error: type[SqlSyntaxError], message: str, column: int) -> None:
    with pytest.raises(error, match=message.replace("]", r"\]")) as caught:
        plan_of(query)
    assert type(caught.value) is error
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    ("query", "error", "line", "column"),
    [
        ("SELEC qty FROM sales", SqlSyntaxError, 1, 1),
        ("SELECT qty\nFROM sales\nWHERE", SqlSyntaxError, 3, 1),
        ("SELECT qty\nFROM sales\n  WHERE qty >", SqlSyntaxError, 3, 13),
        ("SELECT (qty FROM sales", SqlSyntaxError, 1, 13),
        ("", SqlSyntaxError, None, None),
        (" ; ", SqlSyntaxError, None, None),
        ("SELECT 'qty FROM sales", SqlSyntaxError, None, None),
        ("SELECT qty FROM sales; SELECT qty FROM sales", UnsupportedSqlError, 1, 31),
        ("CREATE TABLE x (a INT)", UnsupportedSqlError, 1, 1),
        ("\n INSERT INTO sales SELECT 1", UnsupportedSqlError, 2, 2),
        ("DROP TABLE sales", UnsupportedSqlError, 1, 1),
    ],
)
def test_text_that_is_no_query(query: str, error: type[SqlSyntaxError], line: int | None, column: int | None) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        plan_of(query)
    assert type(caught.value) is error
    assert (caught.value.line, caught.value.column) == (line, column)


def test_names_that_look_like_keywords() -> None:
    assert windows("SELECT ts AS now, qty AS rows, item AS range, name AS `window` FROM sales [NOW]") == [Range(1)]
    assert windows("SELECT user FROM clicks AS stream [ROWS 1]") == [Rows(1)]
