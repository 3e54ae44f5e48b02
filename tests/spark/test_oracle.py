"""A sample of the oracle's cases on Spark, in micro-batches and shards: many in one job, some as queries of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.oracle.case import STREAMS
from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle
from tests.test_oracle_jobs import RIGHT, Job, assert_job

pytestmark = pytest.mark.spark

ALONE = (
    ("every_type", None),
    ("near_timestamp_in_s", 3),
    ("by_hour_timestamp_ntz_in_ms", 2),
    ("near_aware", 4),
    ("rows_first_last_joined", 5),
    ("paper1_q5_except", 6),
    ("over_different_partitions", 8),
    ("rows_bursts_partitioned", 4),
    ("pair_moments", 6),
    ("hop_open_grouped", 6),
    ("interval_around_endless", 8),
    ("now_from_a_column_range", 6),
)

TOGETHER = {
    "streams": (
        "slide_aggregate full_theta_too aggregate_over_aggregate distinct_over_join top_over_group unbounded_group "
        "rows_everywhere join_over_except_all_of_lengths over_ranking over_frame_around over_qualify not_in "
        "scalar_count in_value_correlated nested_left_join_carries explode_above_aggregate cube except_all_rows "
        "relation_above_except"
    ),
    "keyed relations": "keyed_full keyed_above_except",
    "non-retroactive relations": "nrr_below_group nrr_above_join",
}
"""Cases over the same streams and relations."""

STRATEGIES = [name for name in RIGHT if name != "input-triggered"]
"""Those that release all changes: changes that are never released are missing on Spark."""


@pytest.mark.parametrize(("name", "batch"), ALONE, ids=[name for name, _ in ALONE])
def test_oracle_on_spark(spark: SparkSession, name: str, batch: int | None) -> None:
    assert_oracle(BY_NAME[name], runtime="spark", batch=batch)


@pytest.mark.parametrize("group", TOGETHER)
def test_oracle_of_a_job_on_spark(spark: SparkSession, group: str) -> None:
    """Every case twice: by the default strategy, and by another in turn, as far as non-retroactive relations allow it."""
    cases = [BY_NAME[name] for name in TOGETHER[group].split()]
    tables = next((one for one in cases if one.relations or one.nrrs), cases[0])
    shared = {"relations": tables.relations, "nrrs": tables.nrrs, "keys": tables.keys}
    cases = [replace(one, streams=STREAMS, **shared) for one in cases]
    strategies = ["auto"] * len(cases)
    if not tables.nrrs:
        turns = [STRATEGIES[number % len(STRATEGIES)] for number in range(len(cases))]
        strategies += ["auto" if one.endless else turn for one, turn in zip(cases, turns, strict=True)]
        cases += cases
    assert_job(Job(cases, [{"strategy": name} for name in strategies]), runtime="spark", batch=8)
