"""Joins that differ in columns: which queries share one, and with which columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sash.optimizer.optimizer import optimize
from sash.optimizer.widen_joins import WidenedJoins, widen_joins
from sash.plan.canonical import canonical
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.nodes import Join, Node, walk
from sash.rows import parse_schema
from sash.sql import parse_query

COLUMNS = parse_schema("ts TIMESTAMP, k INT, g STRING, v INT, x DOUBLE")
CATALOG = Catalog(
    {name: StreamEntry(name, COLUMNS, "ts") for name in ("s", "r", "q")},
    {"t": RelationEntry("t", parse_schema("k INT, name STRING, kind STRING"))},
)
FROM = "FROM s [RANGE 1 MINUTE] AS a JOIN r [RANGE 1 MINUTE] AS b ON a.k = b.k"
COUNTS = f"SELECT a.g, COUNT(*) AS n {FROM} GROUP BY a.g"
SUMS = f"SELECT a.g, SUM(b.x) AS n {FROM} GROUP BY a.g"
HIGHEST = f"SELECT a.v, MAX(b.v) AS n {FROM} GROUP BY a.v"
CHAIN = f"SELECT {{}} {FROM} JOIN q [RANGE 1 MINUTE] AS c ON c.k = b.k"


def widened(
    *queries: str, known: Mapping[str, Mapping[str, Sequence[int]]] | None = None, pays: bool = True
) -> WidenedJoins:
    """The queries a, b, c ..., where a shared join costs less, or more, than separate ones."""
    plans = dict(zip("abcdef", [optimize(parse_query(sql, CATALOG).plan).plan for sql in queries], strict=False))
    return widen_joins(plans, known or {}, lambda _, shared: float(bool(shared) != pays))


def joins(found: WidenedJoins) -> dict[str, set[Node]]:
    """The joins of every query."""
    return {
        name: {canonical(node) for node in walk(plan) if isinstance(node, Join)} for name, plan in found.plans.items()
    }


def columns(found: WidenedJoins, query: str) -> list[int]:
    (only,) = found.columns[query].values()
    return list(only)


def test_joins_that_differ_in_columns_get_the_columns_of_all() -> None:
    found = widened(COUNTS, SUMS, HIGHEST)
    assert [one.queries for one in found.compared] == [("a", "b", "c")]
    assert joins(found)["a"] == joins(found)["b"] == joins(found)["c"] == found.shared
    (join,) = found.shared
    assert [str(field.dtype) for field in join.schema] == ["int32", "string", "int32", "int32", "int32", "double"]
    assert columns(found, "a") == columns(found, "b") == [1, 2, 3, 6, 8, 9]


def test_plans_stay_where_separate_joins_cost_less() -> None:
    found = widened(COUNTS, SUMS, pays=False)
    assert found.shared == frozenset()
    assert joins(found)["a"] != joins(found)["b"]
    assert columns(found, "a") == [1, 2, 6]


def test_joins_of_other_inputs_conditions_and_tables_are_not_compared() -> None:
    other = [
        COUNTS.replace("RANGE 1 MINUTE] AS b", "RANGE 2 MINUTES] AS b"),
        COUNTS.replace("a.k = b.k", "a.k = b.v"),
        COUNTS.replace("a.k = b.k", "a.k = b.k AND a.v < b.v"),
        COUNTS.replace(" GROUP", " WHERE b.x > 2 GROUP"),
        COUNTS.replace("JOIN r", "LEFT JOIN r"),
    ]
    assert widened(SUMS, *other).compared == ()
    looked_up = "SELECT t.{} FROM s [RANGE 1 MINUTE] AS a JOIN t ON a.k = t.k"
    assert widened(looked_up.format("name"), looked_up.format("kind")).compared == ()


def test_equal_joins_are_shared_without_this() -> None:
    assert widened(SUMS, SUMS.replace("SUM", "MAX")).compared == ()


def test_chains_of_joins_are_shared_whole() -> None:
    found = widened(CHAIN.format("a.g, c.x"), CHAIN.format("b.v"), COUNTS)
    assert [one.queries for one in found.compared] == [("a", "b")]
    assert joins(found)["a"] == joins(found)["b"]


def test_queries_of_an_earlier_job_keep_the_columns_that_their_logs_have() -> None:
    before = widened(COUNTS, SUMS)
    known = {name: before.columns[name] for name in ("a", "b")}
    found = widened(COUNTS, SUMS, HIGHEST, known=known)
    assert columns(found, "a") == columns(found, "b") == columns(before, "a")
    assert columns(found, "c") == [1, 3, 6, 8]
    fitting = widened(COUNTS, SUMS, COUNTS.replace("a.g", "b.x"), known=known)
    assert [one.queries for one in fitting.compared] == [("a", "b", "c")]
    assert columns(fitting, "c") == columns(before, "a")


def test_a_query_that_was_alone_is_not_widened_for_a_new_one() -> None:
    alone = widened(COUNTS)
    assert widened(COUNTS, SUMS, known=alone.columns).compared == ()
    # Nor is one of a checkpoint that does not tell the columns of joins.
    assert widened(COUNTS, SUMS, known={"a": {}}).compared == ()
    assert [one.queries for one in widened(SUMS, COUNTS, known={"a": {}}).compared] == [("a", "b")]


def test_columns_that_nobody_reads_any_more_are_dropped() -> None:
    before = widened(COUNTS, SUMS)
    assert columns(widened(COUNTS, known=before.columns), "a") == [1, 2, 6]
