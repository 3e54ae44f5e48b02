"""Random chains of changes of a job, interrupted and with batches left over: its answers are those of one that never changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.random_changes import run_chain

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", [0, 1, 10])
def test_a_random_chain_of_changes(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    assert run_chain(spark, tmp_path, seed, changes=3)["answers compared"] > 40


@pytest.mark.parametrize("seed", [3])
def test_a_random_chain_of_changes_whose_processes_are_killed(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    assert run_chain(spark, tmp_path, seed, changes=2, kill=True)["answers compared"] > 10
