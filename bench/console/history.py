"""Batch times of a job with a history and of the same job without one, in turns: two processes, of which one is paused.

A batch a second has the rows of that second. Every row changes the answer when it comes and when it leaves the window, so the
history gets up to four changes per row. The first batches of a turn, which have the rows of the pause, do not count.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from bench.console.measure import batches, job_process, wait_for
from bench.report import Figures
from sash.control import request
from sash.job_index import find_job

_JOB = """
CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond {rows});
CREATE QUERY by_key AS SELECT value % 1000 AS k, COUNT(*) AS n, MAX(value) AS highest FROM ticks [RANGE 30 SECONDS]
GROUP BY value % 1000 INTO changelog (path 'by_key') MODE {mode} {key} TRIGGER '1 second';
"""
_SKIPPED = 3


@dataclass(frozen=True)
class _Job:
    checkpoint: str
    log: Path


def measure_history(rows: int, mode: str, seconds: float, turns: int) -> Figures:
    """The batch times of both jobs, in turns of so many seconds each."""
    found: dict[str, list[float]] = {"on": [], "off": []}
    with ExitStack() as stack:
        script = _JOB.format(rows=rows, mode=mode, key="KEY (k)" if mode == "upsert" else "")
        jobs = {name: stack.enter_context(_started(script, name)) for name in found}
        for _ in range(turns):
            for name, job in jobs.items():
                socket = find_job(job.checkpoint).socket
                request(socket, "resume", 120)
                found[name] += batches(job.log, lambda: time.sleep(seconds))[_SKIPPED:]
                request(socket, "pause", 120)
    on, off = statistics.median(found["on"]), statistics.median(found["off"])
    return {
        "rows_per_second": rows,
        "mode": mode,
        "batch_ms_off": off,
        "batch_ms_on": on,
        "ratio": round(on / off, 4),
        "batches": [len(found["off"]), len(found["on"])],
        "turns": turns,
    }


def history_table(figures: Figures) -> Table:
    """The figures as a table."""
    found = Table("", "")
    found.add_row("rows per second", f"{figures['rows_per_second']:,}")
    found.add_row("batch, median, --history off", f"{figures['batch_ms_off']:.0f} ms")
    found.add_row("batch, median, with the history", f"{figures['batch_ms_on']:.0f} ms")
    found.add_row("ratio", f"{figures['ratio']:.3f}")
    found.add_row("batches", " and ".join(map(str, figures["batches"])))
    return found


@contextmanager
def _started(script: str, history: str) -> Iterator[_Job]:
    """A job that has run some batches and is paused."""
    options = ["--history", "off"] if history == "off" else []
    with (
        tempfile.TemporaryDirectory(prefix="sash-bench-") as folder,
        job_process(Path(folder), script, *options) as log,
    ):
        wait_for(log, "batch")
        time.sleep(10)
        checkpoint = str(Path(folder) / "job.checkpoint")
        request(find_job(checkpoint).socket, "pause", 120)
        yield _Job(checkpoint, log)
