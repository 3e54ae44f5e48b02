from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sash.spark.layout import shard_labels, spark_hash


@pytest.mark.spark
def test_the_hash_is_sparks(spark: SparkSession) -> None:
    values = [0, 1, 2, 41, -1, 2**40 + 3, -(2**63), 2**63 - 1]
    frame = spark.createDataFrame([(value,) for value in values], "value long").selectExpr("hash(value) AS hash")
    assert [row.hash for row in frame.collect()] == [spark_hash(value) for value in values]


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 16, 100])
def test_every_shard_has_a_partition_of_its_own(shards: int) -> None:
    labels = shard_labels(shards)
    assert sorted(spark_hash(label) % shards for label in labels) == list(range(shards))
