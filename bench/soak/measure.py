"""A job that runs for an hour: whether memory, open files, working state and checkpoint stay as they are.

The queries have keys that never come again, so that what a key leaves behind would add up. The rows of the source are
numbered, the windows are at most a minute long, and changelogs drop what is older than five minutes: after the warm-up,
nothing should grow.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.report import Figures
from bench.runs import scratch
from bench.soak.processes import (
    DRIVER,
    JVM,
    MEGABYTE,
    WORKERS,
    folder_size,
    heap_after_collection,
    held_by_role,
    java_process,
)
from sash.errors import SashError

_WARM_UP = 1 / 6
_COLLECT_EVERY = 300.0
_START_SECONDS = 300.0

SERIES = {
    "driver_mb": "driver, memory, MB",
    "jvm_mb": "JVM, memory, MB",
    "heap_mb": "JVM, heap after a full collection, MB",
    "workers_mb": "Python workers, memory, MB",
    "workers": "Python workers and their daemon",
    "driver_files": "driver, open files",
    "jvm_files": "JVM, open files",
    "worker_files": "Python workers, open files",
    "worker_maps": "Python workers, mapped files of arenas",
    "arena_mb": "arenas and Spark's local files, MB",
    "arena_files": "arenas and Spark's local files, files",
    "checkpoint_mb": "checkpoint, MB",
    "checkpoint_files": "checkpoint, files",
    "output_mb": "changelogs, MB",
    "output_files": "changelogs, files",
    "batch_ms": "batch, median, ms",
    "state_rows": "rows in state",
    "state_mb": "state, MB",
}
"""What is sampled, with the words of the table."""


def script(rate: int, trigger: float = 1.0) -> str:
    """The job, with a batch every `trigger` seconds: keys that come again and such that never do, a join, DISTINCT over strings, and a top-k."""
    queries = {
        "by_key": "SELECT value % 1000 AS k, COUNT(*) AS n, SUM(value) AS total FROM ticks [RANGE 1 MINUTE] "
        "GROUP BY value % 1000",
        "new_keys": "SELECT value DIV 10 AS k, COUNT(*) AS n FROM ticks [RANGE 30 SECONDS] GROUP BY value DIV 10",
        "pairs": "SELECT a.value AS one, b.value AS next FROM ticks [RANGE 10 SECONDS] AS a "
        "JOIN ticks [RANGE 10 SECONDS] AS b ON b.value = a.value + 1",
        "names": "SELECT DISTINCT concat('name ', CAST(value DIV 3 AS STRING)) AS name FROM ticks [RANGE 20 SECONDS]",
        "top": "SELECT value FROM ticks [RANGE 10 SECONDS] ORDER BY value % 997 DESC, value LIMIT 10",
    }
    made = [f"CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond {rate});"]
    made += [
        f"CREATE QUERY {name} AS {sql}\nINTO changelog (path 'out/{name}', compact 20, retain '5 minutes') MODE net "
        f"TRIGGER '{trigger:g} seconds';"
        for name, sql in queries.items()
    ]
    return "\n".join(made) + "\n"


def measure(seconds: float, rate: int, trigger: float = 1.0, period: float = 10.0) -> Figures:
    """Run the job for so long, and sample what it holds."""
    with scratch() as home, running_job(home, script(rate, trigger), rate) as (process, log):
        await_batch(process, log)
        samples: list[dict[str, float]] = []
        events = _Events(log)
        begun = collected = time.monotonic()
        while (now := time.monotonic()) - begun < seconds:
            if process.poll() is not None:
                raise SashError(f"the job ended: {log.read_text(encoding='utf-8')[-2_000:]}")
            one = {"seconds": round(now - begun, 1), **_sample(process.pid, home), **events.figures()}
            if not samples or now - collected >= _COLLECT_EVERY:
                java, collected = java_process(process.pid), now
                heap = None if java is None else heap_after_collection(java)
                one |= {} if heap is None else {"heap_mb": heap / MEGABYTE}
            samples.append(one)
            time.sleep(period)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(180)
        return {
            "seconds": seconds,
            "rows_per_s": rate,
            "trigger_s": trigger,
            "rows": events.rows,
            "batches": events.batches,
            "load": round(statistics.median(events.durations) / 1000 / trigger, 3),
            "longest_batch_ms": max(events.durations),
            "exit_code": code,
            "stop_seconds": round(time.monotonic() - begun, 1),
            "slopes": slopes(samples, seconds * _WARM_UP),
            "samples": thinned(samples),
        }


@contextmanager
def running_job(
    home: Path, text: str, rate: int, command: Sequence[str] = (), environment: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A job of its own process group, begun by a command such as `prlimit`; it is killed if it has not ended."""
    (home / "job.sql").write_text(text, encoding="utf-8")
    (home / "local").mkdir(exist_ok=True)
    log = home / "log.jsonl"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  (our own command)
            [*command, sys.executable, "-m", "sash.cli", "run", "job.sql", "--json"],
            cwd=home,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "SPARK_LOCAL_DIRS": str(home / "local"),
                **(environment or {}),
            },
        )
        try:
            yield process, log
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(30)


def events_of(log: Path) -> list[dict[str, Any]]:
    """All events that a job has logged so far."""
    lines = log.read_bytes().splitlines()
    return [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"}")]


class _Events:
    """The batches of the job as its log tells them, from the first call of `figures` on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._at = log.stat().st_size
        self.durations: list[float] = []
        self.rows = self.batches = 0

    def figures(self) -> dict[str, float]:
        """Of the batches since the last call: the median duration, and the state after the last one."""
        with self._log.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        batches: dict[int, dict[str, Any]] = {}
        for line in whole.splitlines():
            event = json.loads(line) if line.startswith(b"{") else {}
            if event.get("event") == "batch" and event.get("query") == "by_key":
                batches[event["batch"]] = event
        if not batches:
            return {}
        took = [event["batch_ms"] for event in batches.values()]
        self.durations += took
        self.batches += len(batches)
        self.rows += sum(event["rows_in"] for event in batches.values())
        return {"batch_ms": statistics.median(took), **self._state(whole)}

    @staticmethod
    def _state(lines: bytes) -> dict[str, float]:
        """The rows and bytes of the state of all queries, as each told it last."""
        last: dict[str, tuple[int, int]] = {}
        for line in lines.splitlines():
            event = json.loads(line) if line.startswith(b"{") else {}
            if event.get("event") == "batch" and event.get("state_rows") is not None:
                last[str(event.get("query"))] = event["state_rows"], event["state_bytes"]
        return {
            "state_rows": sum(rows for rows, _ in last.values()),
            "state_mb": sum(size for _, size in last.values()) / MEGABYTE,
        }


def _sample(pid: int, home: Path) -> dict[str, float]:
    held = held_by_role(pid, home / "local")
    (arena, arenas), (checkpoint, chunks) = folder_size(home / "local"), folder_size(home / "job.checkpoint")
    output, outputs = folder_size(home / "out")
    return {
        "driver_mb": held[DRIVER].memory / MEGABYTE,
        "jvm_mb": held[JVM].memory / MEGABYTE,
        "workers_mb": held[WORKERS].memory / MEGABYTE,
        "workers": held[WORKERS].processes,
        "driver_files": held[DRIVER].files,
        "jvm_files": held[JVM].files,
        "worker_files": held[WORKERS].files,
        "worker_maps": held[WORKERS].mapped,
        "arena_mb": arena / MEGABYTE,
        "arena_files": arenas,
        "checkpoint_mb": checkpoint / MEGABYTE,
        "checkpoint_files": chunks,
        "output_mb": output / MEGABYTE,
        "output_files": outputs,
    }


def slopes(samples: Sequence[dict[str, float]], warm_up: float) -> dict[str, dict[str, float]]:
    """For every series after the warm-up: its mean, its range, and its slope per hour, by least squares.

    >>> found = slopes([{"seconds": 60.0 * n, "driver_mb": 100.0 + n} for n in range(61)], 0)
    >>> found["driver_mb"]
    {'mean': 130.0, 'least': 100.0, 'most': 160.0, 'per_hour': 60.0}
    """
    found = {}
    for name in SERIES:
        points = [(one["seconds"] / 3600, one[name]) for one in samples if name in one and one["seconds"] >= warm_up]
        if len(points) > 1:
            hours, values = zip(*points, strict=True)
            slope = statistics.linear_regression(hours, values).slope
            figures = {"mean": statistics.fmean(values), "least": min(values), "most": max(values), "per_hour": slope}
            found[name] = {part: round(value, 3) for part, value in figures.items()}
    return found


def thinned(samples: Sequence[dict[str, float]], most: int = 120) -> list[dict[str, float]]:
    """At most so many samples, evenly spread, and all that have the size of the heap."""
    step = -(-len(samples) // most)
    kept = [one for number, one in enumerate(samples) if number % step == 0 or "heap_mb" in one]
    return [{name: round(value, 2) for name, value in one.items()} for one in kept]


def table(figures: Figures) -> Table:
    """The slopes as a table."""
    shown = Table(title=f"{figures['seconds']:.0f} s, {figures['rows']:,} rows, load {figures['load']:.0%}")
    for head in ("", "mean", "least", "most", "per hour"):
        shown.add_column(head, justify="left" if not head else "right")
    for name, one in figures["slopes"].items():
        cells = [f"{one[part]:,.1f}" for part in ("mean", "least", "most")]
        shown.add_row(SERIES[name], *cells, f"{one['per_hour']:+,.1f}")
    return shown


def await_batch(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for the first batch of a job."""
    until = time.monotonic() + _START_SECONDS
    while '"event": "batch"' not in log.read_text(encoding="utf-8"):
        if process.poll() is not None or time.monotonic() > until:
            raise SashError(f"the job finished no batch: {log.read_text(encoding='utf-8')[-2_000:]}")
        time.sleep(0.5)
