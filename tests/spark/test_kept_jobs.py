"""A checkpoint of a job that an earlier version wrote goes on, and can still change: its windows are kept."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.errors import CheckpointError
from tests.spark.files import ROWS_PER_BATCH, FolderSink, batches_of, expected, made_up_rows
from tests.spark.kept_jobs import ARCHIVES, JOB, replace_paths, run_job
from tests.spark.kept_queries import AFTER, BEFORE, write_rows

pytestmark = pytest.mark.spark
ROWS = [row for part in batches_of(made_up_rows(BEFORE + AFTER)) for row in part]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVES / "job_of_format_7.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    replace_paths(tmp_path, "/kept", str(tmp_path.resolve()))
    write_rows(tmp_path / "in", range(BEFORE + AFTER))
    return tmp_path


def netted(changes: Counter[tuple[Any, ...]], since: int) -> dict[tuple[Any, ...], int]:
    """The changes of every instant from `since` on: equal rows of two shards may come and go at once."""
    found: Counter[tuple[Any, ...]] = Counter()
    for (op, *change), count in changes.items():
        found[tuple(change)] += count if op == "+" else -count
    return {change: count for change, count in found.items() if count and change[0] >= since}


SINCE = ROWS[BEFORE * ROWS_PER_BATCH - 1]["ts"]
"""The changes before this instant were released by the batches before."""


def test_a_job_of_format_7_goes_on(spark: SparkSession, home: Path) -> None:
    run_job(spark, home, JOB)
    for name, sql in JOB.items():
        assert netted(FolderSink(home / "out" / name).read(), 0) == netted(expected(sql, ROWS), SINCE), name


def test_a_job_of_format_7_can_change(spark: SparkSession, home: Path) -> None:
    shorter = JOB["group_by"].replace("60 MILL", "25 MILL")
    run_job(spark, home, {**JOB, "group_by": shorter}, shards=3, on_change="apply")
    found = {name: FolderSink(home / "out" / name).read() for name in JOB}
    for name in JOB.keys() - {"group_by"}:
        assert netted(found[name], 0) == netted(expected(JOB[name], ROWS), SINCE), f"{name} is kept, on more shards"
    assert netted(found["group_by"], SINCE + 1) == netted(expected(shorter, ROWS), SINCE + 1)
    assert min(ts for _, ts, *_ in found["group_by"]) == SINCE, "the sink gets the difference at the change"


def test_state_that_this_version_names_otherwise_is_not_taken_for_kept(spark: SparkSession, home: Path) -> None:
    """The name of a stage is that of an older version: its state would not be found, and the answer would lack rows."""
    path = home / "checkpoint" / "job" / "g1" / "sash-job.json"
    manifest = json.loads(path.read_text())
    manifest["plan"]["stages"][-2] = "0123456789ab"
    path.write_text(json.dumps(manifest))
    for on_change in ("refuse", "apply"):
        with pytest.raises(CheckpointError, match="does not name its state as this version of Sash does"):
            run_job(spark, home, JOB, shards=3, on_change=on_change)
    assert (home / "checkpoint" / "job" / "CURRENT").read_text() == "g1"
