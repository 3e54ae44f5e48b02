"""A sample of the oracle's cases on Spark: the same change streams, in micro-batches and shards."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle

pytestmark = pytest.mark.spark

SAMPLE = (
    ("every_type", None),
    ("slide_aggregate", 4),
    ("min_max_of_every_type", 5),
    ("global_holistic", 4),
    ("first_last", 3),
    ("three_way_two_attributes", 5),
    ("full_theta_too", 4),
    ("anti_theta_too", 4),
    ("relation_above_except", 4),
    ("except_all_rows", 3),
    ("aggregate_over_aggregate", 4),
    ("distinct_over_join", 4),
    ("top_over_group", 5),
    ("unbounded_group", 4),
    ("rows_of_every_type", 3),
    ("rows_bursts_partitioned", 4),
    ("rows_partitioned_joined_with_rows", 5),
    ("rows_of_a_stream_twice", 5),
    ("rows_except_all", 6),
    ("rows_first_last_joined", 5),
    ("paper1_q3", 4),
    ("paper1_q5_except", 4),
    ("paper4_worked_example", 2),
    ("relation_that_changes_below_group", 3),
    ("keyed_by_another_column", 3),
    ("keyed_full", 4),
    ("keyed_above_except", 4),
    ("relation_counted", 3),
    ("nrr_below_group", 3),
    ("nrr_by_another_column", 2),
    ("nrr_above_join", 5),
)


@pytest.mark.parametrize(("name", "batch"), SAMPLE, ids=[name for name, _ in SAMPLE])
def test_oracle_on_spark(spark: SparkSession, name: str, batch: int | None) -> None:
    assert_oracle(BY_NAME[name], runtime="spark", batch=batch)
