"""The list of many queries: what it consists of, that it plans, and that a sample of it agrees with the oracle."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import pytest

from bench.many.streams import SCHEMAS, TABLE_SCHEMAS, TABLES
from bench.many.workload import BROAD, MIXED, NARROW, JobQuery, alike, by_account, mixed
from sash.cli.catalog import declared_catalog
from sash.plan.tree import tree
from sash.planning import Planned, plan_query
from tests.oracle.case import Case
from tests.oracle.check import assert_oracle
from tests.oracle.translate import duck_sql_from

RATE = 10_000
SAMPLE = (*mixed(20), *alike(4, RATE))


def planned(queries: tuple[JobQuery, ...]) -> list[Planned]:
    streams = [f"{name}({schema})" for name, schema in SCHEMAS.items()]
    catalog = declared_catalog(streams, [f"{name}({schema})" for name, schema in TABLE_SCHEMAS.items()])
    return [plan_query(query.sql, catalog, shards=2) for query in queries]


def canonical(plan: Planned) -> str:
    """The optimized plan without the names of columns."""
    return re.sub(r"\w+#(?=\d)", "#", re.sub(r" AS \w+", "", tree(plan.optimized)))


def partition_keys(plan: Planned) -> set[tuple[str, ...]]:
    return {
        tuple(given.leaf.schema[key].name for key in given.keys)
        for stage in plan.physical.stages
        if not stage.single
        for given in stage.inputs
    }


def test_the_list_of_mixed_queries_is_fixed() -> None:
    assert mixed(MIXED) == mixed(MIXED)
    assert mixed(10) == mixed(MIXED)[:10]
    assert len(mixed(MIXED)) == MIXED == 100


def test_no_two_mixed_queries_are_equal() -> None:
    seen = Counter(map(canonical, planned(mixed(MIXED))))
    assert len(seen) == MIXED, [plan for plan, count in seen.items() if count > 1]


def test_mixed_queries_have_many_keys_windows_filters_and_joins() -> None:
    listed = mixed(MIXED)
    windows = {window for query in listed for window in query.windows}
    joins = Counter(query.join for query in listed)
    assert len(set().union(*map(partition_keys, planned(listed)))) >= 5
    assert (len(windows) >= 8, min(windows), max(windows)) == (True, 1, 60)
    assert len({each for query in listed for each in query.filters}) >= 30
    assert joins["table"] + joins["streams"] >= 20
    assert min(joins["table"], joins["streams"]) >= 10


def test_queries_are_what_they_are_said_to_be() -> None:
    for query, plan in zip(mixed(MIXED), planned(mixed(MIXED)), strict=True):
        assert Counter(re.findall(r"RANGE (\d+) SECONDS", query.sql)) == Counter(map(str, query.windows))
        assert all(condition in query.sql for _, condition in query.filters)
        assert {stream for stream, _ in query.filters} <= set(plan.streams)
        assert ("JOIN" in query.sql) == (query.join != "none")
        assert query.join != "streams" or set(plan.streams) == set(SCHEMAS)


@pytest.mark.parametrize("first", range(0, MIXED, 10))
def test_any_ten_are_a_mixture(first: int) -> None:
    ten = mixed(MIXED)[first : first + 10]
    assert any(query.join != "none" for query in ten)
    assert any("GROUP BY" in query.sql for query in ten)
    assert len({query.windows for query in ten}) >= 4


def test_alike_queries_differ_in_a_constant_only() -> None:
    listed = alike(1_000, RATE)
    shapes = Counter(re.sub(r"(= |> )[\d.]+", r"\1?", query.sql) for query in listed)
    assert sorted(shapes.values()) == [500, 500]
    assert len({query.sql for query in listed}) == len({query.name for query in listed}) == 1_000
    assert by_account(1) not in listed
    assert len(set(map(canonical, planned(listed)))) == 1_000


def rows(stream: str, count: int, draw: Random) -> list[dict[str, Any]]:
    """Rows at whole seconds, with few accounts, and values that every filter of the stream passes now and then."""
    made = []
    for _ in range(count):
        row: dict[str, Any] = {"ts": draw.randrange(40), "account": draw.choice((0, 1, 25, 75, 25_000))}
        if stream == "payments":
            row |= {"merchant": draw.choice((2, 3, 45, 100)), "country": draw.choice((0, 2, 7, 9))}
            row |= {"amount": draw.choice((1.0, 12.0, 55.0, 110.0, 250.0)), "items": draw.choice((1, 6, 9))}
        else:
            row |= {"page": draw.choice((3, 4, 100, 300)), "country": draw.choice((0, 3, 8, 10))}
            row |= {"device": draw.choice((0, 1, 2, 5, 7)), "millis": draw.choice((10, 120, 550, 800, 2_000))}
        made.append(row)
    return sorted(made, key=lambda row: int(row["ts"]))


def scaled_down(query: JobQuery) -> str:
    """The query with thresholds that a few rows reach."""
    lowered = re.sub(r"(HAVING COUNT\(\*\)) > \d+", r"\1 > 1", query.sql)
    return re.sub(r"(HAVING SUM\(amount\)) > (\d+)\.(\d)", r"\1 > 300.\3", lowered)


@pytest.mark.parametrize("query", SAMPLE, ids=lambda query: query.name)
def test_a_sample_agrees_with_the_oracle(query: JobQuery) -> None:
    sql = scaled_down(query)
    draw = Random(query.name)
    streams = {name: rows(name, 60, draw) for name in SCHEMAS if name in sql}
    duck, views = duck_sql_from(sql, streams)
    relations = {name: table.to_pylist() for name, table in TABLES.items() if f"JOIN {name}" in sql}
    schemas = {name: SCHEMAS[name].replace("ts TIMESTAMP", "ts BIGINT") for name in streams}
    case = Case(
        query.name, sql, duck, streams, views, relations=relations, schemas=schemas, scale=1e5, empties="GROUP" in sql
    )
    result = assert_oracle(case)
    assert any(change.op == "+" for change in result.changes)


@pytest.mark.parametrize("stream", SCHEMAS)
def test_no_filter_is_listed_twice(stream: str) -> None:
    listed = (*BROAD[stream], *NARROW[stream])
    assert len(listed) == len(set(listed))
