"""Which micro-batch releases a change under each strategy, on Spark: as in the tables of the local runtime."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.strategy_tables import (
    INPUTS,
    TEXTS,
    assert_answers_of_all,
    golden,
    released,
    replay_all,
    replay_one,
    tables,
)
from tests.table1 import QUERIES

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("inputs", INPUTS)
def test_oracle_changes_are_released_as_in_the_golden_file(spark: SparkSession, inputs: str) -> None:
    """All queries and strategies in one job; their answers are the oracle's. The query of two stages is in one of them."""
    results = replay_all(inputs, "spark", TEXTS if inputs == "slow" else QUERIES)
    assert golden(inputs).read_text().startswith(tables(results))
    assert_answers_of_all(inputs, results)


@pytest.mark.parametrize(
    ("query", "strategy"), [("q2", "time-probing every 20 s"), ("q3", "piggyback for 20 s"), ("q5", "time-message")]
)
def test_a_query_alone_is_released_as_locally(spark: SparkSession, query: str, strategy: str) -> None:
    on_spark, local = (replay_one(query, "slow", strategy, runtime, batch=6) for runtime in ("spark", "local"))
    assert released(on_spark) == released(local)
    for name, seen in local.counts.items():
        found = on_spark.counts[name]
        assert (found.messages, found.time_probes, found.switches) == (seen.messages, seen.time_probes, seen.switches)
