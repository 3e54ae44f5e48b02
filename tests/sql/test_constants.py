from __future__ import annotations

import pytest

from sash.errors import SashError
from sash.testing import replay
from tests.sql.plans import columns, plan_of, tree

ONE = "Relation one row"


def test_values_are_one_expansion_of_one_row() -> None:
    assert tree("VALUES (1, 'a'), (2, 'b')") == ["Expand [col1, col2] 1, 'a'; 2, 'b'", "  " + ONE]
    assert tree("SELECT * FROM VALUES 1, 2 AS t(x)") == ["Project col1 AS x", "  Expand [col1] 1; 2", "    " + ONE]
    assert tree("SELECT 1 AS a WHERE 2 > 1") == ["Project 1 AS a", "  Filter 2 > 1", "    " + ONE]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("VALUES (1, 2.5), (NULL, 3)", ["col1 INT", "col2 DECIMAL(11,1)"]),
        ("SELECT * FROM (VALUES (1), (CAST(2 AS BIGINT))) AS t(x)", ["x BIGINT"]),
        ("SELECT 1, 'a' AS b", ["1 INT", "b STRING"]),
        ("SELECT t.* FROM VALUES (1) t JOIN items ON t.col1 = items.item", ["col1 INT"]),
    ],
)
def test_columns_have_the_common_types_of_their_values(query: str, names: list[str]) -> None:
    assert columns(query) == names


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("VALUES (1), (1, 2)", "the rows of VALUES have 1 and 2 columns"),
        ("VALUES (1), (TRUE)", "column 1 of VALUES have no common type"),
        ("VALUES (item)", "there is no column item"),
        ("SELECT *", "at least one output column"),
        ("SELECT item", "there is no column item"),
        ("SELECT * FROM VALUES (1, 2) AS t(a)", "1 names for 2 columns"),
        ("VALUES (1), ('a')", "column 1 of VALUES have no common type"),
        ("SELECT * FROM sales PIVOT (sum(qty) FOR (item, name) IN (1))", "PIVOT goes by 2 columns"),
        ("SELECT * FROM sales UNPIVOT ((a, b) FOR c IN (item))", "UNPIVOT makes 2 columns of 1"),
        ("SELECT * FROM sales UNPIVOT (a FOR c IN (item, name))", "the columns of UNPIVOT have no common type"),
    ],
)
def test_refused(query: str, message: str) -> None:
    with pytest.raises(SashError, match=message):
        plan_of(query)


@pytest.mark.parametrize("strategy", ["auto", "negative-tuple", "direct"])
def test_a_constant_answer_is_there_from_the_start(strategy: str) -> None:
    result = replay("SELECT x, COUNT(*) AS n FROM VALUES (1), (2), (1) AS t(x) GROUP BY x", {}, strategy=strategy)  # type: ignore[arg-type]
    assert sorted(map(tuple, map(dict.values, result.at(0)))) == [(1, 2), (2, 1)]
    assert {change.ts for change in result.changes} == {0}


def test_many_values() -> None:
    rows = ", ".join(f"({number}, 'n{number}')" for number in range(3_000))
    result = replay(f"SELECT COUNT(*) AS n, MAX(b) AS b FROM VALUES {rows} AS t(a, b)", {})
    assert result.at(0) == [{"n": 3_000, "b": "n999"}]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT 1 + a AS x FROM VALUES (1), (2) AS t(a) GROUP BY a + 1", [(2,), (3,)]),
        ("SELECT SUM(a) AS t FROM VALUES (1), (5) AS t(a) GROUP BY a + 1 HAVING 1 + a > 3", [(5,)]),
        ("SELECT a + b AS x, b, COUNT(*) AS n FROM VALUES (1, 2) AS t(a, b) GROUP BY GROUPING SETS ((a + b), (b + a), (b))",
         [(3, None, 1), (3, None, 1), (None, 2, 1)]),
        ("SELECT SUM(a) AS t FROM VALUES (1), (-2) AS t(a) HAVING SUM(a) + 1", []),
        ("SELECT SUM(a) AS t FROM VALUES (1), (-1) AS t(a) HAVING SUM(a) + 1", [(0,)]),
    ],
)  # fmt: skip
def test_answers_that_spark_gives(query: str, rows: list[tuple[object, ...]]) -> None:
    found = [tuple(row.values()) for row in replay(query, {}).at(0)]
    assert sorted(found, key=str) == sorted(rows, key=str)
