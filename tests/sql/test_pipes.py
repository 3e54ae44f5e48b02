"""Pipe syntax: a query with |> has the answer of the one that it abbreviates, as rows come and expire."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from sash.errors import SashError
from sash.testing import replay

STREAMS = {
    "s": [{"ts": ts, "k": ts % 3, "v": ts * 5 % 7} for ts in range(1, 20)],
    "r": [{"ts": ts, "k": ts % 4, "w": ts * 3 % 5} for ts in range(2, 20)],
}
SCHEMAS = {"s": "ts BIGINT, k INT, v INT", "r": "ts BIGINT, k INT, w INT"}
PAIRS = {
    "FROM s |> WHERE v > 3 |> AGGREGATE COUNT(*) AS n GROUP BY v": "SELECT v, COUNT(*) AS n FROM s WHERE v > 3 GROUP BY v",
    "SELECT v, k FROM s |> WHERE k < 2 |> EXTEND v + k AS t": "SELECT v, k, v + k AS t FROM s WHERE k < 2",
    "FROM s |> JOIN r USING (k) |> AGGREGATE SUM(w) AS t": "SELECT SUM(w) AS t FROM s JOIN r USING (k)",
    "FROM s |> WHERE v > 2 |> RIGHT JOIN r ON s.k = r.k |> DROP ts": (
        "SELECT a.k, a.v, r.k, r.w FROM (SELECT * FROM s WHERE v > 2) AS a RIGHT JOIN r ON a.k = r.k"
    ),
    "FROM s |> SELECT v |> ORDER BY v DESC |> LIMIT 2": "SELECT v FROM s ORDER BY v DESC LIMIT 2",
    "FROM s |> SELECT v |> ORDER BY v |> LIMIT 3 |> WHERE v > 1": (
        "SELECT * FROM (SELECT v FROM s ORDER BY v LIMIT 3) WHERE v > 1"
    ),
    "FROM s |> SELECT v |> LIMIT 3 |> LIMIT 1 OFFSET 1": "SELECT * FROM (SELECT v FROM s LIMIT 3) LIMIT 1 OFFSET 1",
    "FROM s |> SELECT v |> UNION ALL (SELECT w FROM r) |> INTERSECT (SELECT k FROM r)": (
        "(SELECT v FROM s UNION ALL SELECT w FROM r) INTERSECT SELECT k FROM r"
    ),
    "FROM s |> SELECT DISTINCT v |> SELECT v % 2 AS x": "SELECT v % 2 AS x FROM (SELECT DISTINCT v FROM s)",
    "FROM s |> AGGREGATE SUM(v) AS t GROUP BY k |> AGGREGATE COUNT(*) AS n, MAX(t) AS m": (
        "SELECT COUNT(*) AS n, MAX(t) AS m FROM (SELECT k, SUM(v) AS t FROM s GROUP BY k)"
    ),
    "SELECT k, COUNT(*) AS n FROM s GROUP BY k |> WHERE n > 1 |> AS t |> SELECT t.n": (
        "SELECT n FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) WHERE n > 1"
    ),
    "FROM s |> SELECT v + 1 AS v |> WHERE v > 3 |> EXTEND v * 2 AS w |> WHERE w < 12": (
        "SELECT v, v * 2 AS w FROM (SELECT v + 1 AS v FROM s) WHERE v > 3 AND v < 6"
    ),
    "FROM s |> AGGREGATE GROUP BY k % 2 AS odd": "SELECT DISTINCT k % 2 AS odd FROM s",
}


@pytest.mark.parametrize("piped", PAIRS)
def test_answer(piped: str) -> None:
    one, other = (
        replay(f"{sql} WINDOW 6 SECONDS", STREAMS, schemas=SCHEMAS, unit="s", until=30) for sql in (piped, PAIRS[piped])
    )
    assert one.at(8)
    for instant in range(30):
        rows = [Counter(tuple(row.values()) for row in result.at(instant)) for result in (one, other)]
        assert rows[0] == rows[1]


REFUSED = {
    "FROM s |> SET v = 2": "there is no pipe operator SET; use AGGREGATE, AS",
    "FROM s |> SELECT v FROM s": "after |> SELECT only expressions",
    "FROM s |> AGGREGATE COUNT(*) GROUP BY 1": "groups by expressions",
    "FROM s |>": "there is no pipe operator here",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused(sql: str) -> None:
    with pytest.raises(SashError, match=re.escape(REFUSED[sql])):
        replay(sql, STREAMS, schemas=SCHEMAS, unit="s")
