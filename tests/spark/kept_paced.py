"""A job whose operators run behind the clock, and whose checkpoint is kept in the middle: times are learnt, and wait for rows.

python -m tests.spark.kept_paced NAME: writes checkpoints/NAME.tar.xz, the checkpoint after the first batches and what the
sinks have then, for later versions to go on from.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sash.testing import replay
from tests.spark.files import ROWS_PER_BATCH, FolderSink, Rows
from tests.spark.kept_jobs import ARCHIVES, replace_paths
from tests.spark.kept_queries import BEFORE, engine_of, write_rows

DISTINCT_OF_JOIN = (
    "SELECT DISTINCT a.k, b.v FROM (SELECT k, v FROM s [RANGE 30 MILLISECONDS] WHERE v = 3) AS a "
    "JOIN (SELECT k, v FROM s [RANGE 9 MILLISECONDS] WHERE v > 6) AS b ON a.k = b.k"
)
PACED: dict[str, tuple[str, dict[str, Any]]] = {
    "piggyback": (DISTINCT_OF_JOIN, {"strategy": "piggyback", "patience": 15}),
    "time_probing": (DISTINCT_OF_JOIN, {"strategy": "time-probing", "probe": 13}),
    "time_message": (DISTINCT_OF_JOIN, {"strategy": "time-message"}),
    "sent_negation": (
        (
            "SELECT a.k AS k, a.v AS v, c.k AS l FROM s [RANGE 50 MILLISECONDS] AS a "
            "LEFT ANTI JOIN (SELECT k, v FROM s [RANGE 10 MILLISECONDS] WHERE v > 7) AS b ON a.k = b.k "
            "JOIN s [RANGE 3 MILLISECONDS] AS c ON a.v = c.v"
        ),
        {},
    ),
}
"""Queries and their options, times in milliseconds. The last one has a negation whose rows another stage reads."""

Released = dict[int, Counter[tuple[Any, ...]]]
"""The changes by the micro-batch that released them."""


def run_paced(spark: SparkSession, home: Path) -> None:
    """Run the job over the files in `home`, and stop it without an end of the input."""
    with engine_of(spark, home / "in") as engine:
        job = engine.job(checkpoint=home / "checkpoint")
        for name, (sql, given) in PACED.items():
            options = {key: f"{value} ms" if isinstance(value, int) else value for key, value in given.items()}
            job.add(name, engine.sql(sql, **options), FolderSink(home / "out" / name), mode="changes")
        running = job.start()
        running.process_all()
        running.stop()


def released(home: Path, name: str) -> Released:
    """What the sink of a query has."""
    files = {int(path.stem): pq.read_table(path).to_pylist() for path in (home / "out" / name).glob("*.parquet")}
    return {number: Counter(tuple(row.values()) for row in rows) for number, rows in files.items() if rows}


def released_locally(name: str, rows: Rows) -> Released:
    """What a run without Spark and without an interruption releases."""
    sql, given = PACED[name]
    options = {key: 1_000 * value if isinstance(value, int) else value for key, value in given.items()}
    result = replay(
        sql, {"s": rows}, unit="us", until=rows[-1]["ts"] + 1_000, batch=ROWS_PER_BATCH, shards=2, **options
    )
    found: Released = {}
    for change in result.changes:
        if change.batch is not None:
            found.setdefault(change.batch, Counter())[change.op, change.ts, *change.row.values()] += 1
    return found


def main(name: str) -> None:
    from sash.spark.session import embedded_session

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        write_rows(home / "in", range(BEFORE))
        spark = embedded_session(cores=2)
        run_paced(spark, home)
        spark.stop()
        replace_paths(home, str(home), "/kept")
        with tarfile.open(ARCHIVES / f"{name}.tar.xz", "w:xz") as archive:
            for kept in ("checkpoint", "out"):
                archive.add(home / kept, kept)


if __name__ == "__main__":
    main(sys.argv[1])
