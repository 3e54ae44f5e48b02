"""Batch times of a job without a console, with its pages open in a browser, and with the console under load, in turns.

The job writes 50 readings a second into and, a window later, out of its answer: 100 changes a second. Under load the console
has readers of changes and requests for answers.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.report import Figures
from sash.errors import SashError

_JOB = """
CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond 50);
CREATE QUERY recent AS SELECT value FROM ticks [RANGE 5 SECONDS]
INTO changelog (path 'recent') TRIGGER '1 second';
"""
_WARM_UP = 30.0
_START_SECONDS = 900.0


def measure(readers: int, rate: float, seconds: float, turns: int) -> Figures:
    """The batch times of the job, and what the load and the browser saw."""
    with tempfile.TemporaryDirectory(prefix="sash-bench-") as folder, job_process(Path(folder), _JOB) as log:
        wait_for(log, "batch")
        time.sleep(_WARM_UP)
        pause = seconds / turns / 2
        times: dict[str, list[float]] = {"without": [], "load": [], "browser": []}
        seen: dict[str, list[dict[str, Any]]] = {"load": [], "browser": []}
        load = {"readers": readers, "rate": rate, "seconds": seconds / turns}
        for _ in range(turns):
            for program, given in (("load", load), ("browser", {"seconds": pause})):
                times["without"] += batches(log, lambda: time.sleep(pause / 2))
                with _console(Path(folder)) as (url, process):
                    times[program] += batches(
                        log, lambda p=program, g=given, u=url: seen[p].append(_beside(p, {"url": u, **g}))
                    )
                    seen[program][-1]["console_processor_seconds"] = _processor_seconds(process.pid)
        times["without"] += batches(log, lambda: time.sleep(pause / 2))
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {
        "batch_ms_without": medians["without"],
        "batch_ms_with_load": medians["load"],
        "batch_ms_with_browser": medians["browser"],
        "ratio_load": round(medians["load"] / medians["without"], 4),
        "ratio_browser": round(medians["browser"] / medians["without"], 4),
        "batches": {name: len(found) for name, found in times.items()},
        "loads": seen["load"],
        "browsers": seen["browser"],
    }


def table(figures: Figures) -> Table:
    """The figures as a table."""
    found = Table("", "")
    found.add_row("batch, median, without console", f"{figures['batch_ms_without']:.0f} ms")
    for name, label in (("browser", "with its pages open in a browser"), ("load", "with the console under load")):
        found.add_row(f"batch, median, {label}", f"{figures[f'batch_ms_with_{name}']:.0f} ms")
        found.add_row("ratio", f"{figures[f'ratio_{name}']:.3f}")
    loads, browsers = figures["loads"], figures["browsers"]
    for label, part in (
        ("changes that readers got", "changes"),
        ("missed or repeated", "missed_or_repeated"),
        ("told to start again", "restarts"),
        ("requests", "requests"),
        ("failed requests", "failed"),
    ):
        found.add_row(label, f"{sum(load[part] for load in loads):,}")
    found.add_row("request, median", f"{1000 * statistics.median(load['median_seconds'] for load in loads):.1f} ms")
    found.add_row("request, 99th percentile", f"{1000 * max(load['p99_seconds'] for load in loads):.1f} ms")
    found.add_row("processor time of the load", f"{sum(load['load_processor_seconds'] for load in loads):.1f} s")
    found.add_row("of the console under it", f"{sum(load['console_processor_seconds'] for load in loads):.1f} s")
    found.add_row("seconds under load", f"{sum(load['seconds'] for load in loads):.0f}")
    found.add_row("processor time of the browser", f"{sum(one['browser_processor_seconds'] for one in browsers):.1f} s")
    found.add_row("of the console with it", f"{sum(one['console_processor_seconds'] for one in browsers):.1f} s")
    found.add_row("seconds with open pages", f"{sum(one['seconds'] for one in browsers):.0f}")
    return found


@contextmanager
def job_process(folder: Path, script: str, *options: str) -> Iterator[Path]:
    """A job that runs in a folder, and its log as JSON."""
    (folder / "job.sql").write_text(script, encoding="utf-8")
    log = folder / "log.jsonl"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  (our own command)
            [sys.executable, "-m", "sash.cli", "run", "job.sql", "--json", *options],
            cwd=folder,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(120)


@contextmanager
def _console(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen(  # noqa: S603  (our own command)
        [sys.executable, "-m", "sash.cli", "console", str(folder / "job.checkpoint"), "--attended", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        yield found["url"], process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def _beside(program: str, given: dict[str, Any]) -> dict[str, Any]:
    """Run one of the programs that use the console; return what it saw."""
    done = subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, "-m", f"bench.console.{program}", json.dumps(given)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def batches(log: Path, during: Any) -> list[float]:
    """The durations of the batches that the job logs while something runs."""
    before = log.stat().st_size
    during()
    with log.open("rb") as file:
        file.seek(before)
        lines = file.read().splitlines()[1:]
    events = [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"}")]
    return [event["batch_ms"] for event in events if event.get("event") == "batch" and event.get("query") is not None]


def wait_for(log: Path, event: str) -> None:
    """Wait until a job has logged an event."""
    until = time.monotonic() + _START_SECONDS
    while f'"event": "{event}"' not in (text := log.read_text(encoding="utf-8")):
        if time.monotonic() > until or '"event": "error"' in text:
            raise SashError("the job did not finish a batch")
        time.sleep(0.5)


def _processor_seconds(pid: int) -> float:
    """The processor time that a process has taken, from /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
