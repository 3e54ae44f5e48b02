"""MAX ROWS PER BATCH: batches over files have no more rows than that, and leave nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sash.errors import CatalogError
from sash.spark.file_batches import FileBatches
from sash.spark.folders import Folder
from tests.spark.files import (
    ROWS_PER_BATCH,
    SQL,
    FolderSink,
    batches_of,
    expected,
    file_engine,
    made_up_rows,
    write_batch,
)

pytestmark = pytest.mark.spark


def test_differential_batches_grow_to_their_limit(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink, most = made_up_rows(24), FolderSink(tmp_path / "out"), 5 * ROWS_PER_BATCH
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    with file_engine(spark, tmp_path / "in", max_rows_per_batch=most) as engine:
        job = engine.job(checkpoint=tmp_path / "checkpoint")
        job.add("totals", SQL, sink)
        running = job.start()
        running.process_all()
        read = [batch["rows_in"] for batch in running.drain_progress() if batch["rows_in"]]
    assert sink.read() == expected(SQL, rows)
    assert read[0] == ROWS_PER_BATCH
    assert sum(read) == len(rows)
    assert 3 * ROWS_PER_BATCH <= max(read) <= most
    assert len(read) < 12


def test_the_size_follows_the_densest_files(spark: SparkSession, tmp_path: Path) -> None:
    limits = FileBatches(spark, Folder(spark, str(tmp_path)), {"/in": 1_000})
    assert limits.size("/in", 100, 10) == 10_000
    assert limits.size("/in", 100, 100) == 1_000
    assert limits.size("/in", 100, 10) == 1_250
    assert limits.size("/in", 10, 5_000) == 2


def test_the_first_batch_must_be_bounded(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema("ts long, k string, v long").parquet(str(tmp_path / "in"))
    with file_engine(spark, tmp_path / "in") as engine:
        for one in (frame, spark.readStream.format("rate").load()):
            with pytest.raises(
                CatalogError, match="max_rows_per_batch is for files that are read with the option maxFiles"
            ):
                engine.stream("t", one, max_rows_per_batch=10)
