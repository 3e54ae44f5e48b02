"""Every query has, at every pinned instant, the answer that Spark gives in batch over the rows valid then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from sash.plan.options import STRATEGIES
from sash.testing import Result, replay, replay_job
from tests.coverage.pinned import Pinned, Query, constructs, queries, read
from tests.coverage.streams import INSTANTS, SCHEMAS, STREAMS
from tests.coverage.values import difference, rows_of, types_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VARIANTS: tuple[dict[str, Any], ...] = (
    {"shards": 1},
    {"shards": 2, "batch": 1},
    {"shards": 3, "batch": 4, "strategy": "negative-tuple"},
    {"shards": 1, "batch": 2, "strategy": "direct"},
    {"shards": 2, "batch": 5, "strategy": "hybrid"},
    {"shards": 1, "batch": 3, "strategy": "time-message"},
    {"shards": 3, "batch": 7, "strategy": "update-pattern-aware"},
)
"""Each query runs in two of these ways: the first, and another in turn."""

PINNED = {construct: read(construct) for construct in constructs()}
QUERIES = [query for construct in constructs() for query in queries(construct)]
OFTEN, SELDOM = 20, 40
"""One of so many queries runs on Spark as well, and one of so many is asked of Spark in batch again."""


def _ids(given: list[Query]) -> list[str]:
    return [f"{query.construct}: {query.sql}" for query in given]


@pytest.mark.parametrize(("number", "query"), list(enumerate(QUERIES)), ids=_ids(QUERIES))
def test_answer(number: int, query: Query) -> None:
    for variant in (VARIANTS[0], VARIANTS[1 + number % (len(VARIANTS) - 1)]):
        check(query, **variant)


def test_every_answer_is_pinned_once() -> None:
    assert {name: list(pinned) for name, pinned in PINNED.items()} == {
        name: [query.sql for query in queries(name)] for name in constructs()
    }


@pytest.mark.spark
def test_answers_on_spark(spark: SparkSession) -> None:
    """One job of all, by all strategies in turn."""
    sample = [query for query in QUERIES if query.place % OFTEN == 0]
    late = {"clock-triggered", "input-triggered"}
    strategies = [name for name in STRATEGIES if name not in late]
    jobs = [
        (query.sql, query.continuous, {"strategy": strategies[number % len(strategies)]})
        for number, query in enumerate(sample)
    ]
    assert len({query.construct for query in sample}) == len(constructs())
    results = replay_job(jobs, **GIVEN, until=max(INSTANTS), runtime="spark", batch=20)
    for query in sample:
        compare(query, results[query.sql])


@pytest.mark.spark
def test_pinned_answers_are_still_those_of_spark(spark: SparkSession) -> None:
    from tests.coverage.batch import SparkBatch

    oracle, instant = SparkBatch(spark), INSTANTS[1]
    for query in QUERIES:
        if query.place % SELDOM == 0:
            pinned, found = PINNED[query.construct][query.sql], oracle.answer(query, [instant])
            assert found.types == pinned.types, query.sql
            assert difference(pinned.rows[instant], found.rows[instant]) == ([], []), query.sql


GIVEN: dict[str, Any] = {"streams": dict(STREAMS), "schemas": dict(SCHEMAS), "unit": "s"}


def check(query: Query, **options: Any) -> None:
    """Replay a query and compare its answers with the pinned ones."""
    compare(query, replay(query.continuous, **GIVEN, until=max(INSTANTS), **options), options)


def compare(query: Query, result: Result, options: Mapping[str, Any] | None = None) -> None:
    """Compare the answers of a query with the pinned ones."""
    pinned: Pinned = PINNED[query.construct][query.sql]
    for instant, rows in pinned.rows.items():
        table = result.to_arrow(at=instant)
        assert types_of(table) == list(pinned.types), (query.sql, options)
        missing, surplus = difference(rows, rows_of(table))
        assert (missing, surplus) == ([], []), f"{query.sql} at {instant}, {options}: {rows_of(table)}, not {rows}"
