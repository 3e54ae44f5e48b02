"""Checkpoints that an earlier version wrote: queries resume from them, so their format is fixed.

`checkpoints/format-6.tar.gz` holds the checkpoints of two queries after the first two of four batches. Paths in them are
`@INPUT@` and `@CHECKPOINT@`.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.files import TWO_STAGES, FolderSink, batches_of, expected, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

ARCHIVE = Path(__file__).parent / "checkpoints" / "format-6.tar.gz"
UNBOUNDED = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k"
WRITTEN = 2
"""The batches that the checkpoints contain."""


def extract(name: str, home: Path) -> Path:
    """Extract a checkpoint, with its paths under `home`."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(home, [one for one in archive if one.name.startswith(f"{name}/")], filter="data")
    checkpoint = home / name
    for path in checkpoint.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            moved = data.replace(b"@INPUT@", str(home / "in").encode()).replace(
                b"@CHECKPOINT@", str(checkpoint).encode()
            )
            if moved != data:
                path.write_bytes(moved)
    return checkpoint


@pytest.mark.parametrize(("name", "sql"), [("two_stages", TWO_STAGES), ("unbounded", UNBOUNDED)])
def test_differential_a_query_resumes_from_format_6(spark: SparkSession, tmp_path: Path, name: str, sql: str) -> None:
    rows, sink = made_up_rows(4), FolderSink(tmp_path / "out")
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    query = file_engine(spark, tmp_path / "in").sql(sql)
    running = query.start(sink, trigger="available_now", checkpoint=str(extract(name, tmp_path)))
    try:
        running.await_termination()
        progress = running.progress()
    finally:
        running.stop()
    assert progress["total_rebuilt"] > 0
    assert progress["batch"] == len(batches_of(rows)) - 1
    before = expected(sql, [row for batch in batches_of(rows)[:WRITTEN] for row in batch])
    assert sink.read() == expected(sql, rows) - before
