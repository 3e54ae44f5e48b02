"""A job whose checkpoint is kept, and what runs it batch by batch.

python -m tests.spark.kept_jobs NAME: writes checkpoints/NAME.tar.xz, the checkpoint of the job after its first batches, for
later versions to go on from. Do so once per released format of the state.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.files import FolderSink
from tests.spark.kept_queries import BEFORE, QUERIES, engine_of, write_rows

ARCHIVES = Path(__file__).parent / "checkpoints"
JOB = {
    name: QUERIES[name].sql
    for name in ("group_by", "two_stages", "count_windows", "shared_rows", "multi_join", "negation_below_join")
}


def run_job(
    spark: SparkSession, home: Path, queries: Mapping[str, str], shards: int | None = None, on_change: Any = "refuse"
) -> None:
    """Run the queries as a job over the files in `home`."""
    with engine_of(spark, home / "in") as engine:
        job = engine.job(checkpoint=home / "checkpoint", trigger="available_now", shards=shards)
        for name, sql in queries.items():
            job.add(name, sql, FolderSink(home / "out" / name), mode="changes")
        running = job.start(on_change=on_change)
        running.await_termination()
        running.stop()


def replace_paths(home: Path, old: str, new: str) -> None:
    """Spark writes where files and the checkpoint are: let them be in the folder `new`."""
    generation = home / "checkpoint" / "job" / "g1"
    for path in generation.rglob(".*.crc"):
        path.unlink()
    for path in (*generation.glob("sources/*/*"), *generation.glob("state/*/_metadata/*/*")):
        text = path.read_text().replace(f"file://{old}/", f"file://{new}/")
        path.write_text(text.replace(f"file:{old}/", f"file:{new}/"))


def main(name: str) -> None:
    from sash.spark.session import embedded_session

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        write_rows(home / "in", range(BEFORE))
        spark = embedded_session(cores=2)
        run_job(spark, home, JOB)
        spark.stop()
        replace_paths(home, str(home), "/kept")
        with tarfile.open(ARCHIVES / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(home / "checkpoint", "checkpoint")


if __name__ == "__main__":
    main(sys.argv[1])
