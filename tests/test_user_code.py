"""Functions and aggregates that users write in Python: answers, how they are maintained, versions and errors."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sash.errors import CatalogError, EvaluationError, SashError, TypeMismatchError
from sash.plan.catalog import Catalog
from sash.plan.options import Options
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.testing import replay, replay_job
from sash.user_library import add_given

SCHEMA = "ts BIGINT, k BIGINT, v BIGINT"


class Listed:
    """The values in order, as text: it shows which rows came, and in which order."""

    def init(self) -> list[Any]:
        return []

    def add(self, state: list[Any], values: pa.Array) -> list[Any]:
        return state + values.to_pylist()

    def result(self, state: list[Any]) -> str:
        return " ".join(map(str, state))


class Merged(Listed):
    merges = 0

    def merge(self, earlier: list[Any], later: list[Any]) -> list[Any]:
        Merged.merges += 1
        return earlier + later


class WeightedMean:
    """Two arguments, and a state from which rows are taken back."""

    def init(self) -> tuple[int, int]:
        return 0, 0

    def add(self, state: tuple[int, int], values: pa.Array, weights: pa.Array) -> tuple[int, int]:
        return self._moved(state, values, weights, 1)

    def remove(self, state: tuple[int, int], values: pa.Array, weights: pa.Array) -> tuple[int, int]:
        return self._moved(state, values, weights, -1)

    def _moved(self, state: tuple[int, int], values: pa.Array, weights: pa.Array, sign: int) -> tuple[int, int]:
        products = pc.sum(pc.multiply(values, weights)).as_py() or 0
        return state[0] + sign * products, state[1] + sign * (pc.sum(weights).as_py() or 0)

    def result(self, state: tuple[int, int]) -> float | None:
        return state[0] / state[1] if state[1] else None


def rows(seed: int, count: int = 60) -> list[dict[str, int | None]]:
    generator = random.Random(seed)
    return [
        {"ts": n // 2, "k": generator.randrange(3), "v": generator.choice([None, 1, 2, 3, 5, 8])} for n in range(count)
    ]


def listed(data: list[dict[str, int | None]], ts: int, length: int, slide: int = 1) -> dict[Any, str]:
    """Q(T) of the list of values by k."""
    groups: dict[Any, list[Any]] = {}
    for row in sorted(data, key=lambda r: (r["ts"], r["k"], -1 if r["v"] is None else r["v"])):
        begin, end = (-(-at // slide) * slide for at in (row["ts"], row["ts"] + length))
        if begin <= ts < end:
            groups.setdefault(row["k"], []).append(row["v"])
    return {k: " ".join(map(str, values)) for k, values in groups.items()}


@pytest.mark.parametrize("strategy", ["auto", "negative-tuple", "direct", "time-message"])
@pytest.mark.parametrize(
    ("window", "length", "slide"), [("RANGE 5 SECONDS", 5, 1), ("RANGE 5 SECONDS SLIDE 2 SECONDS", 5, 2)]
)
def test_every_way_sees_the_rows_of_the_window_in_order(strategy: Any, window: str, length: int, slide: int) -> None:
    data = rows(11)
    sql = f"SELECT k, listed(v) AS a, merged(v) AS b FROM s [{window}] GROUP BY k"
    aggregates = {"listed": (Listed, "STRING"), "merged": (Merged, pa.string(), "2")}
    for batch, shards in ((None, 1), (7, 3)):
        result = replay(
            sql, {"s": data}, strategy=strategy, unit="s", batch=batch, shards=shards, schemas={"s": SCHEMA},
            aggregates=aggregates,
        )  # fmt: skip
        for ts in range(40):
            expected = listed(data, ts, length, slide)
            assert {row["k"]: row["a"] for row in result.at(ts)} == expected
            assert {row["k"]: row["b"] for row in result.at(ts)} == expected
        assert result.state_rows == 0


def test_rows_are_merged_a_constant_number_of_times() -> None:
    data = [{"ts": n, "k": 0, "v": 1} for n in range(400)]
    Merged.merges = 0
    replay(
        "SELECT merged(v) AS a FROM s [RANGE 100 SECONDS] GROUP BY k", {"s": data}, unit="s", schemas={"s": SCHEMA}, batch=50,
        aggregates={"merged": (Merged, "STRING")},
    )  # fmt: skip
    assert 400 < Merged.merges < 400 * 8


def test_several_arguments_filters_and_empty_windows() -> None:
    data = rows(5)
    sql = "SELECT wmean(v, k) AS a, wmean(v, k) FILTER (WHERE v > 2) AS b FROM s [RANGE 4 SECONDS] WHERE v IS NOT NULL"
    result = replay(
        sql,
        {"s": data},
        unit="s",
        batch=9,
        until=60,
        schemas={"s": SCHEMA},
        aggregates={"wmean": (WeightedMean, "DOUBLE")},
    )
    for ts in range(0, 33, 3):
        values = [r for r in data if ts - 4 < r["ts"] <= ts and r["v"] is not None]
        weight = sum(r["k"] for r in values)
        (row,) = result.at(ts)
        assert row["a"] == (sum(r["v"] * r["k"] for r in values) / weight if weight else None)
        large = [r for r in values if r["v"] > 2]
        weight = sum(r["k"] for r in large)
        assert row["b"] == (sum(r["v"] * r["k"] for r in large) / weight if weight else None)
    assert result.at(59) == [{"a": None, "b": None}]


def test_above_a_count_window_and_a_group_by() -> None:
    data = rows(7, 20)
    aggregates = {"listed": (Listed, "STRING"), "merged": (Merged, "STRING")}
    counted = replay(
        "SELECT merged(v) AS a FROM s [ROWS 4]", {"s": data}, unit="s", schemas={"s": SCHEMA}, aggregates=aggregates
    )
    ordered = sorted(data, key=lambda r: (r["ts"], r["k"], -1 if r["v"] is None else r["v"]))
    assert counted.at(9) == [{"a": " ".join(str(r["v"]) for r in ordered[-4:])}]
    nested = replay(
        "SELECT listed(n) AS a FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 30 SECONDS] GROUP BY k)",
        {"s": data}, unit="s", schemas={"s": SCHEMA}, aggregates=aggregates,
    )  # fmt: skip
    counts = [sum(r["k"] == k for r in data) for k in range(3)]
    assert nested.at(9) == [{"a": " ".join(map(str, counts))}]


def test_a_correlated_subquery_without_rows_has_the_result_of_no_rows() -> None:
    result = replay(
        "SELECT k, (SELECT listed(v) FROM s [RANGE 5 SECONDS] AS b WHERE b.k = a.k AND b.v = 8) AS l FROM s [RANGE 5 SECONDS] AS a",
        {"s": [{"ts": 1, "k": 1, "v": 8}, {"ts": 1, "k": 2, "v": 5}]}, unit="s", schemas={"s": SCHEMA},
        aggregates={"listed": (Listed, "STRING")},
    )  # fmt: skip
    assert sorted(result.at(2), key=str) == [{"k": 1, "l": "8"}, {"k": 2, "l": ""}]


def test_functions_above_any_operator_and_in_conditions() -> None:
    data = rows(3)
    functions = {
        "twice": (lambda v: pc.multiply(v, 2), "BIGINT"),
        "label": (lambda k, v: [f"{a}:{b}" for a, b in zip(k, v, strict=True)], "STRING"),
    }
    sql = "SELECT twice(k) AS k2, twice(SUM(twice(v))) AS a FROM s [RANGE 5 SECONDS] WHERE twice(v) > 2 GROUP BY twice(k) HAVING twice(COUNT(*)) > 1"
    plain = "SELECT k * 2 AS k2, SUM(v * 2) * 2 AS a FROM s [RANGE 5 SECONDS] WHERE v * 2 > 2 GROUP BY k * 2 HAVING COUNT(*) * 2 > 1"
    one = replay(sql, {"s": data}, unit="s", schemas={"s": SCHEMA}, functions=functions)
    two = replay(plain, {"s": data}, unit="s", schemas={"s": SCHEMA})
    for ts in range(36):
        assert sorted(map(str, one.at(ts))) == sorted(map(str, two.at(ts)))
    text = replay(
        "SELECT label(k, 7) AS a FROM s [RANGE 1 SECOND]",
        {"s": data},
        unit="s",
        schemas={"s": SCHEMA},
        functions=functions,
    )
    assert {row["a"] for row in text.at(4)} == {f"{row['k']}:7" for row in data if row["ts"] == 4}


def test_queries_of_a_job_share_them() -> None:
    data = rows(9)
    sql = "SELECT k, listed(v) AS a FROM s [RANGE 5 SECONDS] GROUP BY k"
    made = replay_job(
        {"one": sql, "two": sql, "other": "SELECT twice(v) AS a FROM s [RANGE 5 SECONDS]"}, {"s": data}, unit="s",
        schemas={"s": SCHEMA}, aggregates={"listed": (Listed, "STRING")}, functions={"twice": (lambda v: pc.add(v, v), "BIGINT")},
    )  # fmt: skip
    for name in ("one", "two"):
        assert {row["k"]: row["a"] for row in made[name].at(12)} == listed(data, 12, 5)
    assert len(made["other"].at(12)) == 10


def plan(sql: str, version: str = "1", window: str = "RANGE 5 SECONDS", code: type[Any] = Merged) -> Any:
    catalog = Catalog()
    catalog.add_stream("s", parse_schema(SCHEMA), "ts")
    add_given(catalog, {"twice": (lambda v: pc.add(v, v), "BIGINT", version)}, {"agg": (code, "STRING", version)})
    return plan_query(sql.format(f"s [{window}]"), catalog, options=Options())


@pytest.mark.parametrize(
    ("code", "window", "way"),
    [
        (Merged, "RANGE 5 SECONDS", "agg: two stacks of merged states per group"),
        (Merged, "ROWS 5", "agg: computed anew from all rows of a group at each change"),
        (Listed, "RANGE 5 SECONDS", "agg: computed anew from all rows of a group at each change"),
        (WeightedMean, "RANGE 5 SECONDS", "agg: one state per group, rows are taken back with remove"),
    ],
)
def test_explain_tells_how_an_aggregate_is_maintained(code: type[Any], window: str, way: str) -> None:
    assert way in plan("SELECT k, agg(v) AS a FROM {} GROUP BY k", window=window, code=code).explain()


def test_explain_tells_which_aggregates_are_computed_anew_over_frames() -> None:
    sql = "SELECT agg(v) OVER (ORDER BY ts ROWS 3 PRECEDING) AS a FROM {}"
    assert "(agg: computed anew from all rows of each frame)" in plan(sql, code=Merged).explain()
    assert "computed anew" not in plan(sql, code=WeightedMean).explain()


@pytest.mark.parametrize(
    "sql", ["SELECT k, agg(v) AS a FROM {} GROUP BY k", "SELECT k, twice(COUNT(*)) AS a FROM {} GROUP BY k"]
)
def test_another_version_is_another_plan(sql: str) -> None:
    from sash.physical.plan_channels import channels_of

    def identities(version: str) -> Any:
        return channels_of(plan(sql, version).physical, share=False).stages

    assert identities("1") == identities("1")
    assert identities("1") != identities("2")


@pytest.mark.parametrize("code", [Listed, Merged])
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(
    "window", ["s [RANGE 5 SECONDS]", "(SELECT k, MAX(v) AS v FROM s [RANGE 5 SECONDS] GROUP BY k, v)"]
)
def test_distinct_values(code: type, shards: int, window: str) -> None:
    """With DISTINCT and FILTER, an aggregate has each value once while a row with it is valid."""
    given = rows(4)
    query = f"SELECT k, agg(DISTINCT v) AS a, agg(DISTINCT v) FILTER (WHERE v > 2) AS b, agg(v) AS c FROM {window} GROUP BY k"
    result = replay(
        query, {"s": given}, unit="s", schemas={"s": SCHEMA}, aggregates={"agg": (code, "STRING")}, shards=shards
    )
    plain = replay(
        f"SELECT k, COLLECT_LIST(v) AS all FROM {window} GROUP BY k", {"s": given}, unit="s", schemas={"s": SCHEMA}
    )
    compared = 0
    for instant in range(0, 80, 3):
        wanted = {row["k"]: row["all"] for row in plain.at(instant)}
        for row in result.at(instant):
            known = [value for value in wanted[row["k"]] if value is not None]
            assert sorted(map(int, filter(str.isdigit, row["a"].split()))) == sorted(set(known))
            assert sorted(map(int, row["b"].split())) == sorted({value for value in known if value > 2})
            compared += len(known) > len(set(known))
    assert compared or "MAX" in window


class Broken(Listed):
    def add(self, state: list[Any], values: pa.Array) -> list[Any]:
        raise ZeroDivisionError("no luck")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT broken(v) AS a FROM s [RANGE 5 SECONDS]", r"broken \(version 7\) failed: ZeroDivisionError: no luck"),
        ("SELECT wrong(v) AS a FROM s [RANGE 5 SECONDS]", "wrong returned what is not BIGINT"),
        ("SELECT bad(v) AS a FROM s [RANGE 5 SECONDS]", r"bad \(version 1\) failed: AttributeError"),
        ("SELECT short(v) AS a FROM s [RANGE 5 SECONDS]", "short returned 1 values for 60 rows"),
    ],
)
def test_errors_name_the_function(sql: str, message: str) -> None:
    functions = {"bad": (lambda v: v.nonsense(), "BIGINT"), "short": (lambda v: v.slice(0, 1), "BIGINT")}
    aggregates = {"broken": (Broken, "STRING", "7"), "wrong": (Listed, "BIGINT")}
    with pytest.raises(EvaluationError, match=message):
        replay(sql, {"s": rows(1)}, unit="s", schemas={"s": SCHEMA}, functions=functions, aggregates=aggregates)


@pytest.mark.parametrize(
    ("functions", "aggregates", "message"),
    [
        ({"upper": (str.upper, "STRING")}, None, "upper is a function of Spark's"),
        ({"f": ("text", "STRING")}, None, "must be a function"),
        ({"f": (str.upper, "STRINGS")}, None, "unknown type"),
        ({"f": str.upper}, None, r"name: \(code, type\)"),
        (None, {"sum": (Listed, "STRING")}, "sum is a function of Spark's"),
        (None, {"a": (int, "BIGINT")}, "init, add, result is missing"),
        ({"f": (str.upper, "STRING")}, {"F": (Listed, "STRING")}, "F is already registered"),
    ],
)
def test_what_cannot_be_registered(functions: Any, aggregates: Any, message: str) -> None:
    with pytest.raises(SashError, match=message):
        add_given(Catalog(), functions, aggregates)


def test_what_cannot_be_called() -> None:
    with pytest.raises(TypeMismatchError, match="agg needs at least 1 argument"):
        plan("SELECT agg() AS a FROM {}")
    with pytest.raises(CatalogError, match="register it with an engine"):
        pickle.dumps(plan("SELECT twice(COUNT(*)) AS a FROM {}").physical)
