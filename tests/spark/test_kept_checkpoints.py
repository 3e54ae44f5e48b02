"""A checkpoint that an earlier version wrote (state format 6) goes on: the changes are those that that version made.

Each archive holds a checkpoint after three batches, and the changes of the next three as the version that wrote it made them.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.files import FolderSink
from tests.spark.kept_queries import AFTER, BEFORE, QUERIES, run_query, write_rows

pytestmark = pytest.mark.spark
ARCHIVES = Path(__file__).parent / "checkpoints"


def move(checkpoint: Path, files: Path) -> None:
    """Put the folders of this test in the place of those that Spark wrote into the checkpoint."""
    for path in (*checkpoint.glob("sources/*/*"), *checkpoint.glob("state/*/_metadata/*/*")):
        text = path.read_text().replace("file:///in/", f"file://{files}/")
        path.write_text(text.replace("file:/checkpoint", f"file:{checkpoint}"))


@pytest.mark.parametrize("name", QUERIES)
def test_a_checkpoint_of_format_6_goes_on(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    checkpoint, sink = tmp_path / name, FolderSink(tmp_path / "out")
    move(checkpoint, tmp_path / "in")
    write_rows(tmp_path / "in", range(BEFORE + AFTER))
    progress = run_query(spark, tmp_path / "in", name, checkpoint, sink)
    assert progress["total_rebuilt"], "state is read from the checkpoint, not begun anew"
    kept = json.loads((checkpoint / "expected.json").read_text())
    assert sink.read() == Counter({tuple(row): count for *row, count in kept})
