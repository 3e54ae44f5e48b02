"""A sample of the oracle's cases on Spark, in micro-batches and shards."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle

pytestmark = pytest.mark.spark

SAMPLE = (
    ("every_type", None),
    ("near_timestamp_in_s", 3),
    ("by_hour_timestamp_ntz_in_ms", 2),
    ("near_aware", 4),
    ("slide_aggregate", 4),
    ("full_theta_too", 8),
    ("relation_above_except", 8),
    ("aggregate_over_aggregate", 4),
    ("distinct_over_join", 8),
    ("top_over_group", 5),
    ("unbounded_group", 4),
    ("rows_bursts_partitioned", 4),
    ("rows_first_last_joined", 5),
    ("rows_everywhere", 12),
    ("paper1_q5_except", 6),
    ("join_over_except_all_of_lengths", 8),
    ("keyed_full", 4),
    ("keyed_above_except", 8),
    ("nrr_below_group", 5),
    ("nrr_above_join", 8),
    ("over_ranking", 8),
    ("over_frame_around", 8),
    ("over_different_partitions", 8),
    ("over_qualify", 6),
    ("not_in", 8),
    ("scalar_count", 8),
    ("in_value_correlated", 8),
    ("pair_moments", 6),
    ("mode_counted", 6),
    ("listagg_of_join", 8),
    ("nested_left_join_carries", 8),
    ("explode_above_aggregate", 8),
    ("cube", 6),
    ("hop_open_grouped", 6),
    ("interval_around_endless", 8),
    ("now_from_a_column_range", 6),
)


@pytest.mark.parametrize(("name", "batch"), SAMPLE, ids=[name for name, _ in SAMPLE])
def test_oracle_on_spark(spark: SparkSession, name: str, batch: int | None) -> None:
    assert_oracle(BY_NAME[name], runtime="spark", batch=batch)
