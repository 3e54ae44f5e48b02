"""A checkpoint of a job that an earlier version wrote while its operators were behind the clock goes on, batch by batch."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.files import batches_of, made_up_rows
from tests.spark.kept_jobs import ARCHIVES, replace_paths
from tests.spark.kept_paced import PACED, released, released_locally, run_paced
from tests.spark.kept_queries import AFTER, BEFORE, write_rows

pytestmark = pytest.mark.spark


def test_what_was_learnt_and_what_waits_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Every batch releases the changes that it releases in a run that nothing interrupts, and in which all is one version."""
    with tarfile.open(ARCHIVES / "paced_job_of_format_7.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    replace_paths(tmp_path, "/kept", str(tmp_path.resolve()))
    assert all(max(released(tmp_path, name)) == BEFORE - 1 for name in PACED)
    write_rows(tmp_path / "in", range(BEFORE + AFTER))
    run_paced(spark, tmp_path)
    rows = [row for batch in batches_of(made_up_rows(BEFORE + AFTER)) for row in batch]
    for name in PACED:
        expected = released_locally(name, rows)
        assert released(tmp_path, name) == {number: expected[number] for number in range(BEFORE + AFTER)}, name
