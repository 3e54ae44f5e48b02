"""Long, deep and wide queries: they run, are planned in linear time, or are refused by name."""

from __future__ import annotations

import pickle
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sash.errors import SashError, UnsupportedSqlError
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.compound import MOST_LEVELS
from sash.plan.expressions import Call, Case, Cast, Column, Expression, Literal
from sash.plan.types import Field
from sash.planning import plan_query
from sash.testing import replay

ROWS = [{"ts": 1, "k": 1, "v": 2, "x": "a"}, {"ts": 2, "k": 3, "v": 3, "x": "b"}]
SCHEMA = {"s": "ts BIGINT, k INT, v INT, x STRING"}


def answer(select: str, rest: str = "") -> list[Any]:
    """The values of the only column at the end."""
    return [value for row in whole(f"SELECT {select} AS r FROM s [ROWS 5] {rest}") for value in row.values()]


def whole(sql: str) -> list[dict[str, Any]]:
    return list(replay(sql, {"s": ROWS}, schemas=SCHEMA).at(2))


def times(count: int, part: str, sign: str) -> str:
    return sign.join([part] * count)


@pytest.mark.parametrize("count", [300, MOST_LEVELS - 5])
def test_long_chains_of_operators_are_evaluated(count: int) -> None:
    assert answer(times(count, "k", " + ")) == [count, 3 * count]
    assert answer(times(count, "k", " + ") + " - 0.5") == [count - Decimal("0.5"), 3 * count - Decimal("0.5")]
    assert answer(times(count, "x", " || ")) == ["a" * count, "b" * count]
    assert answer("- " * count + "k") == ([1, 3] if count % 2 == 0 else [-1, -3])
    assert answer("NOT " * count + "(k = 1)") == ([True, False] if count % 2 == 0 else [False, True])
    assert answer("k", "WHERE " + " AND ".join(f"k <> {i + 3}" for i in range(count))) == [1]
    assert answer("k", "WHERE " + " OR ".join(f"k = {i + 3}" for i in range(count))) == [3]
    assert answer("sum(" + times(count, "k", " + ") + ")") == [4 * count]


def test_a_long_chain_without_an_alias_has_a_name() -> None:
    (row, _) = whole(f"SELECT {times(300, 'k', '+')} FROM s [ROWS 5]")
    ((name, value),) = row.items()
    assert name == "(" * 299 + "k" + " + k)" * 299
    assert value == 300


def test_a_long_disjunction_of_conjunctions_is_evaluated() -> None:
    terms = " OR ".join(f"(k = {i} AND v = {i})" for i in range(2_000))
    assert answer("k", f"WHERE {terms}") == [3]


@pytest.mark.parametrize("count", [3, 200])
def test_many_unions_are_one(count: int) -> None:
    branches = [f"SELECT k + {i % 5} AS r FROM s [RANGE 1 SECOND]" for i in range(count)]
    values = [k + i % 5 for i in range(count) for k in (1, 3)]
    assert sorted(row["r"] for row in whole(" UNION ALL ".join(branches))) == sorted(values)
    assert sorted(row["r"] for row in whole(" UNION ".join(branches))) == sorted(set(values))
    mixed = f"{' UNION '.join(branches)} UNION ALL {branches[0]}"
    assert sorted(row["r"] for row in whole(mixed)) == sorted([*set(values), 1, 3])


def test_terms_of_a_union_are_cast_one_after_the_other() -> None:
    sql = "SELECT x AS r FROM s [ROWS 1] WHERE x = 'c' UNION SELECT k FROM s [ROWS 5] UNION SELECT 1.5 FROM s [ROWS 5]"
    assert sorted(row["r"] for row in whole(sql)) == [1, Decimal("1.5"), 3]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {times(MOST_LEVELS + 2, 'k', '+')} AS r FROM s [ROWS 5]",
        f"SELECT {'(' * 5_000}k{')' * 5_000} AS r FROM s [ROWS 5]",
        f"SELECT {'abs(' * 5_000}k{')' * 5_000} AS r FROM s [ROWS 5]",
        f"SELECT {'CASE WHEN k = 1 THEN 1 ELSE ' * 500}k{' END' * 500} AS r FROM s [ROWS 5]",
        f"SELECT k FROM {'(SELECT k FROM ' * 500}s [ROWS 5]{')' * 500}",
        times(500, "SELECT k FROM s [ROWS 5]", " EXCEPT "),
        "SELECT k AS a0, "
        + ", ".join(f"CASE WHEN a{i} = 1 THEN 2 ELSE k END AS a{i + 1}" for i in range(200))
        + " FROM s",
        "SELECT k AS a0, " + ", ".join(f"a{i} + a{i} AS a{i + 1}" for i in range(60)) + " FROM s [ROWS 5]",
        "WITH a0 AS (SELECT k FROM s [ROWS 5])"
        + "".join(f", a{i + 1} AS (SELECT DISTINCT k + 1 AS k FROM a{i})" for i in range(400))
        + " SELECT k FROM a400",
        "WITH a0 AS (SELECT k FROM s [ROWS 5])"
        + "".join(f", a{i + 1} AS (SELECT a.k FROM a{i} a JOIN a{i} b ON a.k = b.k)" for i in range(60))
        + " SELECT k FROM a60",
        "WITH a0 AS (SELECT k FROM s [ROWS 5])"
        + "".join(f", a{i + 1} AS (SELECT * FROM a{i} a CROSS JOIN a{i} b)" for i in range(60))
        + " SELECT count(*) FROM a60",
    ],
    ids=lambda sql: sql[:30],
)
def test_what_is_too_deep_or_too_large_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=r"nested|parts|operators|columns"):
        whole(sql)


def test_deep_expressions_are_hashed_compared_and_pickled() -> None:
    def deep() -> Expression:
        made: Expression = Column(0, "k", pa.int64())
        for i in range(900):
            made = Call("add", (Literal(i, pa.int64()), made), pa.int64()) if i % 3 else Cast(made, pa.int64())
        return Case(((Call("eq", (made, made), pa.bool_()), made),), None, pa.int64())

    one, other = deep(), deep()
    assert one == other
    assert one != Cast(other, pa.int64())
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one
    assert Call("add", (one,), pa.int64()) != Call("add", (one, other), pa.int64())


def planning_steps(sql: str) -> int:
    """The number of function calls that planning takes."""
    schema = (Field("ts", pa.timestamp("us", "UTC")), Field("k", pa.int32()), Field("v", pa.int32()))
    catalog = Catalog(streams={"s": StreamEntry("s", schema, "ts")})
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        plan_query(sql, catalog)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "text",
    [
        lambda n: " UNION ".join(f"SELECT k + {i} AS k FROM s [RANGE 1 HOUR]" for i in range(n)),
        lambda n: " UNION ALL ".join(f"SELECT k + {i} AS k FROM s [RANGE 1 HOUR]" for i in range(n)),
        lambda n: f"SELECT {', '.join(f'k + {i} AS c{i}' for i in range(10 * n))} FROM s [RANGE 1 HOUR]",
        lambda n: (
            f"SELECT {', '.join(f'c{i}' for i in range(10 * n))} FROM "
            f"(SELECT {', '.join(f'k + {i} AS c{i}' for i in range(10 * n))} FROM s [RANGE 1 HOUR])"
        ),
        lambda n: f"SELECT k FROM s [RANGE 1 HOUR] WHERE {' OR '.join(f'(k={i} AND v={i})' for i in range(10 * n))}",
        lambda n: f"SELECT k FROM s [RANGE 1 HOUR] WHERE {' AND '.join(f'k <> {i}' for i in range(10 * n))}",
        lambda n: f"SELECT {times(2 * n, 'k', ' + ')} AS r FROM s [RANGE 1 HOUR]",
        lambda n: f"SELECT {', '.join(f'sum(k + {i}) AS c{i}' for i in range(2 * n))} FROM s [RANGE 1 HOUR] GROUP BY v",
    ],
    ids=["union", "union all", "columns", "columns of columns", "or", "and", "plus", "aggregates"],
)
def test_planning_takes_linear_time(text: Any) -> None:
    planning_steps(text(2))
    few, many = planning_steps(text(50)), planning_steps(text(200))
    assert many < 4 * few * 1.3


def test_errors_of_size_are_sash_errors_however_deep_the_caller_is() -> None:
    def called(depth: int) -> None:
        if depth:
            return called(depth - 1)
        with pytest.raises(SashError):
            whole(times(95, "SELECT k FROM s [ROWS 5]", " EXCEPT "))
        return None

    called(600)
