"""Arrays, structs, maps and generators in SQL: names, types and refusals."""

from __future__ import annotations

import pytest

from sash.errors import TypeMismatchError, UnknownNameError, UnsupportedSqlError
from sash.plan.catalog import Catalog
from sash.plan.nodes import Expand, Generate, walk
from sash.rows import parse_schema
from sash.sql import parse
from sash.testing import replay

CATALOG = Catalog()
CATALOG.add_stream(
    "s", parse_schema("ts BIGINT, a ARRAY<INT>, st STRUCT<x: INT, `y z`: STRUCT<q: STRING>>, m MAP<STRING, INT>")
)


def columns(sql: str) -> list[str]:
    return [str(field) for field in parse(sql, CATALOG).schema]


@pytest.mark.parametrize(
    ("written", "column"),
    [
        ("st.x", "x INT"),
        ("s.st.x", "x INT"),
        ("s.st.`y z`.q", "q STRING"),
        ("st['x'] AS v", "v INT"),
        ("m['k'] AS v", "v INT"),
        ("m.k AS v", "v INT"),
        ("a[0] AS v", "v INT"),
        ("array(st).x AS v", "v ARRAY<INT>"),
        ("struct(ts, st.x, 1) AS v", "v STRUCT<ts: BIGINT, x: INT, col3: INT>"),
        ("(ts, 1) AS v", "v STRUCT<ts: BIGINT, col2: INT>"),
        ("map_entries(m) AS v", "v ARRAY<STRUCT<key: STRING, value: INT>>"),
        ("CAST(a AS ARRAY<STRING>) AS v", "v ARRAY<STRING>"),
        ("array(1, 2)[0] AS v", "v INT"),
    ],
)
def test_what_is_selected_from_nested_columns(written: str, column: str) -> None:
    assert columns(f"SELECT {written} FROM s [NOW]") == [column]


def test_the_fields_of_a_struct_by_a_star() -> None:
    assert columns("SELECT st.*, ts FROM s [NOW]") == ["x INT", "y z STRUCT<q: STRING>", "ts BIGINT"]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("explode(a)", ["col INT"]),
        ("posexplode(a) AS (p, v)", ["p INT", "v INT"]),
        ("explode(m)", ["key STRING", "value INT"]),
        ("inline(array(st))", ["x INT", "y z STRUCT<q: STRING>"]),
        ("stack(2, 1, 'a', 2)", ["col0 INT", "col1 STRING"]),
    ],
)
def test_the_columns_of_generators(written: str, names: list[str]) -> None:
    assert columns(f"SELECT {written} FROM s [NOW]") == names


def test_an_array_that_is_written_out_is_expanded() -> None:
    kinds = [type(node) for node in walk(parse("SELECT explode(array(ts, 1)) AS x FROM s [NOW]", CATALOG))]
    assert Expand in kinds
    assert Generate not in kinds
    assert any(isinstance(node, Generate) for node in walk(parse("SELECT explode(a) AS x FROM s [NOW]", CATALOG)))


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("SELECT st.z FROM s [NOW]", TypeMismatchError, "has no field z"),
        ("SELECT t.x FROM s [NOW]", UnknownNameError, "there is no t in this FROM clause"),
        ("SELECT a['k'] FROM s [NOW]", TypeMismatchError, "a whole number as position, not STRING"),
        ("SELECT m[1.5] IS NULL, ts[0] FROM s [NOW]", TypeMismatchError, "for arrays and maps"),
        ("SELECT m = m FROM s [NOW]", TypeMismatchError, "cannot be compared"),
        ("SELECT DISTINCT m FROM s [NOW]", TypeMismatchError, "DISTINCT cannot compare MAP"),
        ("SELECT m FROM s [NOW] EXCEPT SELECT m FROM s [NOW]", TypeMismatchError, "EXCEPT cannot compare MAP"),
        ("SELECT ts FROM s [NOW] ORDER BY m LIMIT 1", TypeMismatchError, "ORDER BY cannot compare MAP"),
        ("SELECT explode(ts) FROM s [NOW]", TypeMismatchError, "explode takes an array or a map, not BIGINT"),
        ("SELECT explode(a), explode(a) FROM s [NOW]", UnsupportedSqlError, "may have one generator"),
        ("SELECT explode(m) AS k FROM s [NOW]", TypeMismatchError, "1 names for 2 columns"),
        ("SELECT hash(ts, array(m)) FROM s [NOW]", TypeMismatchError, "hash does not take ARRAY<MAP<STRING, INT>>"),
        ("SELECT stack(ts, 1) FROM s [NOW]", TypeMismatchError, "a constant number of rows"),
        ("SELECT id FROM range(1, 1000000)", UnsupportedSqlError, "range may have 10,000 rows"),
    ],
)
def test_what_is_refused(sql: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse(sql, CATALOG)


def test_the_hash_of_a_nested_value_is_that_of_its_parts() -> None:
    """Spark goes on from part to part, as it does from argument to argument, and NULLs change nothing."""
    rows = [
        {"ts": n, "k": (None, "é", "")[n % 3], "v": (7, None)[n % 2], "x": (-0.0, None, 1e300, 2.5)[n % 4]}
        for n in range(12)
    ]
    parts = "array(v, v + 1, NULL), struct(k, x, array(struct(v, k), NULL)), CAST(NULL AS ARRAY<INT>), array()"
    flat = "v, v + 1, k, x, v, k"
    sql = f"SELECT hash({parts}) AS a, hash({flat}) AS b, xxhash64({parts}) AS c, xxhash64({flat}) AS d FROM (SELECT DISTINCT * FROM s [RANGE 1 HOUR])"
    found = replay(sql, {"s": rows}, unit="s", until=12).at(12)
    assert len({row["a"] for row in found}) == len(rows)
    assert all(row["a"] == row["b"] and row["c"] == row["d"] for row in found)
