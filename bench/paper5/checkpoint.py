"""The bytes that a batch writes to the checkpoint, by rows in the window: the group-by benchmark on Spark.

The files with the state store's changes, which commit with a batch, are counted. RocksDB's own files, which are uploaded
in the background, are counted separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.data import Sales, write_stream
from bench.growth import CASES
from bench.queries import WINDOW_SECONDS
from bench.runs import file_stream, scratch
from sash.cli.session import quiet_engine
from sash.engine import Engine
from sash.errors import SashError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WINDOWS = (100_000, 300_000, 1_000_000)
BATCH = 50_000
_BATCHES = 6
_SETTLING = 2
_CHANGES = ".changelog"


def checkpoint_bytes(windows: Sequence[int] = WINDOWS, batch: int = BATCH) -> list[dict[str, Any]]:
    """Measure the bytes per batch for every window, once it is full."""
    with quiet_engine() as engine:
        return [_written(engine.spark, window, batch) for window in windows]


def _written(spark: SparkSession, window: int, batch: int) -> dict[str, Any]:
    case = next(case for case in CASES if case.name == "group-by")
    sales = Sales(window / WINDOW_SECONDS, items=max(1, window // case.rows_per_key))
    filling = ceil(window / batch)
    with scratch() as home:
        write_stream(home / "sales", sales, [batch] * (filling + _SETTLING + _BATCHES), seed=5)
        engine = Engine(spark)
        engine.stream("sales", file_stream(spark, home / "sales"))
        running = engine.sql(case.sql).start("noop", mode="changes", checkpoint=str(home / "checkpoint"))
        try:
            running.process_all()
            held = running.progress()["state_bytes"]
        finally:
            running.stop()
        changes, others = sizes(home / "checkpoint" / "state")
    steady = [changes[version] for version in sorted(changes)][-_BATCHES:]
    if not steady:
        raise SashError("Spark wrote no changelog of its state store: enable changelog checkpointing")
    return {
        "window_rows": window,
        "batch_rows": batch,
        "bytes_per_batch": int(median(steady)),
        "least": min(steady),
        "most": max(steady),
        "bytes_per_row": round(median(steady) / batch, 1),
        "background_bytes": others,
        "state_bytes": held,
    }


def sizes(state: Path) -> tuple[Counter[int], int]:
    """The bytes of changes by version, and the bytes of all other files, in the state part of a checkpoint."""
    changes: Counter[int] = Counter()
    others = 0
    for path in state.rglob("*"):
        if path.is_file() and path.suffix == _CHANGES:
            changes[int(path.stem.split("_")[0])] += path.stat().st_size
        elif path.is_file():
            others += path.stat().st_size
    return changes, others
