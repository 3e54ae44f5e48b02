"""Every query has, at every pinned instant, the answer that Spark gives in batch over the rows valid then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sash.testing import replay
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
SAMPLE = [query for query in QUERIES if query.place % 40 == 0]
"""The queries that run on Spark, too."""


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


OVER_STREAMS = [query for query in SAMPLE if query.construct != "constants"]
"""The sample without queries that read no stream, which Spark does not start."""


@pytest.mark.spark
@pytest.mark.parametrize("query", OVER_STREAMS, ids=_ids(OVER_STREAMS))
def test_answer_on_spark(spark: SparkSession, query: Query) -> None:
    check(query, runtime="spark", batch=20)


@pytest.mark.spark
@pytest.mark.parametrize("query", SAMPLE, ids=_ids(SAMPLE))
def test_pinned_answer_is_still_that_of_spark(spark: SparkSession, query: Query) -> None:
    from tests.coverage.batch import SparkBatch

    pinned = PINNED[query.construct][query.sql]
    found = SparkBatch(spark).answer(query, INSTANTS[1:2])
    assert found.types == pinned.types
    assert difference(pinned.rows[INSTANTS[1]], found.rows[INSTANTS[1]]) == ([], [])


def check(query: Query, **options: Any) -> None:
    """Replay a query and compare its answers with the pinned ones."""
    pinned: Pinned = PINNED[query.construct][query.sql]
    result = replay(query.continuous, dict(STREAMS), schemas=dict(SCHEMAS), unit="s", until=max(pinned.rows), **options)
    for instant, rows in pinned.rows.items():
        table = result.to_arrow(at=instant)
        assert types_of(table) == list(pinned.types), options
        missing, surplus = difference(rows, rows_of(table))
        assert (missing, surplus) == ([], []), f"at {instant}, with {options}: {rows_of(table)}, not {rows}"
