"""Random jobs with a sink and an expression that fail, and a stream that stalls: each query has its answers meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.random_troubles import run_troubles

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", [0])
def test_a_random_job_in_trouble(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    words = run_troubles(spark, tmp_path, seed)
    assert words["answers compared"] > 100
    assert words["answers of queries that had been parked"] > 10
