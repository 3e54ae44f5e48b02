"""Hand-over: the time from the last batch of a job to the first batch of the job it is changed to, by the size of its state.

The state is a window of rows with twelve random measurements each, which cannot be compressed much. It is filled from large
files; then a thread writes a small file every half second, so that the job has a batch to run whenever it can.

Rows that stay in their shards do not move, but the operators of queries that are not kept are rebuilt from them. So the
time also depends on the operators: sums, as here, are cheap to rebuild. With another key, or another number of shards, all
rows move to other shards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from bench.data import START
from bench.report import Figures
from bench.runs import in_own_process, scratch
from sash.cli.session import quiet_engine
from sash.errors import SashError
from sash.time import SECOND

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.job import Job
    from sash.running_job import RunningJob

MEASUREMENTS = tuple(f"m{number}" for number in range(12))
SCHEMA = ", ".join(("ts TIMESTAMP", "account INT", "device INT", *(f"{name} DOUBLE" for name in MEASUREMENTS)))
ACCOUNTS, DEVICES = 1_000, 5_000
ROWS_PER_FILE = 500_000
ROW_BYTES = 104
"""Approximate bytes of a row in the state, compressed."""
_PERIOD = 0.5
_PATIENCE = 900

_SUMS = ", ".join(f"SUM({name}) AS {name}" for name in MEASUREMENTS)
BY_ACCOUNT = (
    f"SELECT account, COUNT(*) AS n, MAX(device) AS highest, {_SUMS} FROM events [RANGE 1 DAY] GROUP BY account"
)
_AVERAGES = BY_ACCOUNT.replace("SUM", "AVG")
_SHORTER = _AVERAGES.replace("1 DAY", "20 HOURS")
_BY_DEVICE = _SHORTER.replace("account", "key").replace("device", "account").replace("key", "device")
CHANGES: Mapping[str, tuple[str, int]] = {
    "another aggregate": (_AVERAGES, 2),
    "a shorter window": (_SHORTER, 2),
    "another key": (_BY_DEVICE, 2),
    "a third shard": (_BY_DEVICE, 3),
}
"""The query after each change, from that of the change before, and its shards; at first there is BY_ACCOUNT."""


def aim(moved: int) -> float:
    """The longest hand-over that is acceptable, in seconds: ten, and one per 50 MB of state that moves."""
    return 10 + moved / (50 << 20)


def measure(megabytes: str) -> Figures:
    """Change a running job with each amount of state in several ways, and measure the hand-overs."""
    console = Console(stderr=True)
    found: list[dict[str, Any]] = []
    for size in (int(text) for text in megabytes.split(",")):
        with console.status(f"{size:,} MB of state"):
            found.extend(in_own_process(_all_changes, size))
    return {"handovers": found}


def table(figures: Figures) -> Table:
    """The figures as a table."""
    shown = Table(title="Hand-over of a running job")
    for heading in ("state, MB", "change", "moved, MB", "seconds", "aim"):
        shown.add_column(heading, justify="left" if heading == "change" else "right")
    for one in figures["handovers"]:
        shown.add_row(
            f"{one['state_mb']:,}",
            one["change"],
            f"{one['moved_mb']:,}",
            f"{one['seconds']:.1f}",
            f"{one['aim_seconds']:.1f}",
        )
    return shown


def _all_changes(megabytes: int) -> list[dict[str, Any]]:
    with scratch() as folder, quiet_engine() as engine:
        return list(_changes(engine, folder, megabytes))


def _changes(engine: Engine, folder: Path, megabytes: int) -> Iterator[dict[str, Any]]:
    source = folder / "events"
    files = max(1, megabytes * (1 << 20) // (ROWS_PER_FILE * ROW_BYTES))
    gap = 19 * 3600 * SECOND // (files * ROWS_PER_FILE)
    random = np.random.default_rng(1)
    source.mkdir()
    for number in range(files):
        _write(source, number, START + number * ROWS_PER_FILE * gap, ROWS_PER_FILE, gap, random)
    reader = engine.spark.readStream.schema(SCHEMA).option("maxFileAge", "36500d").option("maxFilesPerTrigger", 1)
    engine.stream("events", reader.parquet(str(source)))
    running = _job(engine, folder, BY_ACCOUNT, 2).start()
    running.process_all_available()
    with _small_files(source, files, START + files * ROWS_PER_FILE * gap, random):
        for name, (query, shards) in CHANGES.items():
            _await_batches(running, 2)
            changed = _job(engine, folder, query, shards)
            diff = running.diff(changed)
            old = running
            running = running.change(changed)
            _await_batches(running, 0 if _ends(running) else 1)
            seconds = _ends(running)[0] - _ends(old)[-1]
            yield {
                "state_mb": megabytes,
                "change": name,
                "moved_mb": round(diff.bytes / (1 << 20)),
                "seconds": round(seconds, 2),
                "aim_seconds": round(aim(diff.bytes), 1),
            }
    running.stop()


def _job(engine: Engine, folder: Path, query: str, shards: int) -> Job:
    job = engine.job(checkpoint=folder / "checkpoint", shards=shards)
    job.add("a", query, "changelog", mode="net", path=str(folder / "a"))
    return job


def _write(source: Path, number: int, first: int, rows: int, gap: int, random: np.random.Generator) -> None:
    columns = {
        "ts": pa.array(first + gap * np.arange(rows, dtype=np.int64), pa.timestamp("us", tz="UTC")),
        "account": random.integers(0, ACCOUNTS, rows, dtype=np.int32),
        "device": random.integers(0, DEVICES, rows, dtype=np.int32),
        **{name: random.random(rows) for name in MEASUREMENTS},
    }
    draft = source.parent / f"{number:06d}.parquet"
    pq.write_table(pa.table(columns), draft, compression="none", use_dictionary=False)
    draft.rename(source / draft.name)


@contextmanager
def _small_files(source: Path, number: int, first: int, random: np.random.Generator) -> Iterator[None]:
    """Write a small file at intervals."""
    ended = threading.Event()

    def write() -> None:
        count = 0
        while not ended.wait(_PERIOD):
            _write(source, number + count, first + count * SECOND, 100, SECOND // 100, random)
            count += 1

    thread = threading.Thread(target=write, name="small-files")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _ends(running: RunningJob) -> list[float]:
    """When the job's batches ended, by the wall clock."""
    return [
        datetime.fromisoformat(report["timestamp"]).timestamp() + report["durationMs"]["triggerExecution"] / 1000
        for report in running.query.recentProgress
        if report["numInputRows"]
    ]


def _await_batches(running: RunningJob, count: int) -> None:
    """Wait until the job has ended so many further batches; of a job that has ended none, the first ones count."""
    begun, end = len(_ends(running)), time.monotonic() + _PATIENCE
    while len(_ends(running)) < begun + count:
        problem = running.exception()
        if problem is not None:
            raise problem
        if time.monotonic() > end:
            raise SashError(f"no batch has ended for {_PATIENCE} seconds")
        threading.Event().wait(0.05)
