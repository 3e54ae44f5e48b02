"""-0.0 and 0.0 are one key, and its value is 0.0 from the first row on, as in Spark; so are all NaNs."""

from __future__ import annotations

import math

import pytest

from sash.testing import replay

ROWS = [{"ts": 1, "k": 1, "x": -0.0}, {"ts": 3, "k": 1, "x": 0.0}, {"ts": 4, "k": 1, "x": math.nan}]
OTHERS = [{"ts": 1, "k": 1, "x": -0.0}, {"ts": 1, "k": 1, "x": math.nan}]
KEYS = (
    "SELECT DISTINCT x FROM s [RANGE 4 SECONDS]",
    "SELECT x FROM s [RANGE 4 SECONDS] GROUP BY x",
    "SELECT x, COUNT(*) AS n FROM s [RANGE 4 SECONDS] GROUP BY x",
    "SELECT x FROM s [RANGE 4 SECONDS] UNION SELECT x FROM s [RANGE 4 SECONDS]",
    "SELECT x FROM s [RANGE 4 SECONDS] INTERSECT SELECT x FROM r [RANGE 9 SECONDS]",
    "SELECT x FROM s [RANGE 4 SECONDS] INTERSECT ALL SELECT x FROM r [RANGE 9 SECONDS]",
    "SELECT x FROM s [RANGE 4 SECONDS] EXCEPT SELECT x FROM r [RANGE 1 SECOND]",
    "SELECT x FROM s [RANGE 4 SECONDS] EXCEPT ALL SELECT x FROM r [RANGE 1 SECOND]",
    "SELECT DISTINCT x FROM s [ROWS 2]",
    "SELECT DISTINCT s.x FROM s [RANGE 4 SECONDS] JOIN r [RANGE 9 SECONDS] ON s.k = r.k",
)


@pytest.mark.parametrize("strategy", ["auto", "negative-tuple", "direct"])
@pytest.mark.parametrize("sql", KEYS)
def test_a_key_is_never_minus_zero(sql: str, strategy: str) -> None:
    result = replay(sql, {"s": ROWS, "r": OTHERS}, unit="s", until=12, batch=1, strategy=strategy)
    assert {repr(change.row["x"]) for change in result.changes} == {"0.0", "nan"}
    later = [row["x"] for row in result.at(6)]
    assert later.count(0.0) == 1
    assert sum(map(math.isnan, later)) == 1


def test_a_distinct_over_the_key_of_a_relation_still_has_one_zero() -> None:
    sql = "SELECT DISTINCT p.id, p.x FROM s [RANGE 4 SECONDS] JOIN p ON s.k = p.id"
    given = {"p": [{"id": 1, "x": -0.0}]}
    result = replay(sql, {"s": ROWS[:1]}, given, unit="s", until=2, keys={"p": ["id"]})
    assert [repr(row["x"]) for row in result.at(2)] == ["0.0"]


def test_rows_that_are_no_keys_keep_their_zeros() -> None:
    sql = "SELECT s.x FROM s [RANGE 4 SECONDS] LEFT SEMI JOIN r [RANGE 9 SECONDS] ON s.x = r.x"
    result = replay(sql, {"s": ROWS[:2], "r": OTHERS}, unit="s", until=4)
    assert sorted(repr(row["x"]) for row in result.at(4)) == ["-0.0", "0.0"]


def test_zeros_inside_of_nested_keys_are_normalised() -> None:
    rows = [{"ts": 1, "x": -0.0}, {"ts": 2, "x": 0.0}]
    for sql in (
        "SELECT CAST(array(x) AS STRING) AS t FROM (SELECT DISTINCT array(x) AS a, x FROM s [RANGE 2 SECONDS]) d",
        "SELECT CAST(a AS STRING) AS t FROM (SELECT DISTINCT array(x) AS a FROM s [RANGE 2 SECONDS]) d",
        "SELECT CAST(a.y AS STRING) AS t FROM (SELECT struct(x AS y) AS a, COUNT(*) FROM s [RANGE 2 SECONDS] GROUP BY a) d",
        "SELECT CAST(a AS STRING) AS t FROM (SELECT array(x) AS a FROM s [RANGE 2 SECONDS] EXCEPT SELECT array(1.0D)) d",
    ):
        result = replay(sql, {"s": rows}, unit="s")
        assert {change.row["t"] for change in result.changes} in ({"[0.0]"}, {"0.0"}), sql
        assert result.at(5) == []
