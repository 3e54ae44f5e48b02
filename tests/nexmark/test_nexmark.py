"""Every NEXMark query has DuckDB's answer at several instants, while rows come and expire, however they are split."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from examples.nexmark.generator import SCHEMAS, START, Generator
from examples.nexmark.queries import SIDE_INPUT, names, text
from sash.testing import replay, replay_job
from sash.testing.result import Result
from tests.coverage.values import difference
from tests.nexmark.oracle import Oracle, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECOND = datetime.timedelta(seconds=1)
GENERATOR = Generator(
    seed=3, gap=_SECOND / 2, duration=60 * _SECOND, hot=5, active=10, open_auctions=12, first_auction=1100
)
STREAMS = GENERATOR.streams(1_100)
RELATIONS = {"side_input": SIDE_INPUT}
LAST = max(row["ts"] for rows in STREAMS.values() for row in rows)
INSTANTS = [START + (seconds + 0.25) * _SECOND for seconds in (48, 252, 349, 377, 502, 549)]
"""Rows expire after 5 minutes, or with their window of 10 seconds."""


def run(name: str, **options: Any) -> Result:
    """Replay a query."""
    return replay(text(name), STREAMS, RELATIONS, schemas=SCHEMAS, until=LAST, **options)


@pytest.mark.parametrize("name", names())
def test_answers_are_those_of_the_oracle(name: str) -> None:
    compare(name, run(name, shards=2, batch=97))


@pytest.mark.spark
def test_all_queries_as_one_job_on_spark(spark: SparkSession) -> None:
    queries = {name: text(name) for name in names()}
    given: dict[str, Any] = {"schemas": SCHEMAS, "until": LAST, "batch": 400}
    results = replay_job(queries, STREAMS, RELATIONS, "spark", **given)
    for name in queries:
        compare(name, results[name])


def compare(name: str, result: Result) -> None:
    """Compare a query's answers with the oracle's, of which some have rows."""
    oracle = Oracle(text(name), STREAMS, RELATIONS)
    seen = 0
    for instant in INSTANTS:
        expected = [plain(row) for row in oracle.at(instant)]
        missing, surplus = difference(expected, [plain(row) for row in result.at(instant)])
        assert (missing, surplus) == ([], []), f"{name} at {instant}"
        seen += len(expected)
    assert seen, name


def test_events_have_the_proportions_of_the_benchmark() -> None:
    streams = Generator(seed=1).streams(10_000)
    assert {name: len(rows) for name, rows in streams.items()} == {"person": 200, "auction": 600, "bid": 9_200}
    ((_, most),) = Counter(row["auction"] // 100 * 100 == row["auction"] for row in streams["bid"]).most_common(1)
    assert 0.45 < most / 9_200 < 0.55
    assert streams == Generator(seed=1).streams(10_000)
    assert streams != Generator(seed=2).streams(10_000)
