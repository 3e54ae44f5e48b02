"""The job of the soak in a memory cgroup that becomes too small for it: it fails with a reason, and goes on when there is more.

The cgroup holds the job's processes only, and its limit is set a little above what they have after some batches. A window of an
hour then outgrows it, and the kernel kills one of the processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
from rich.table import Table

from bench.report import Figures
from bench.runs import scratch
from bench.soak.measure import await_batch, events_of, running_job
from bench.soak.processes import MEGABYTE
from sash.errors import SashError

_CGROUPS = Path("/sys/fs/cgroup/memory")
_SETTLED, _AFTERWARDS = 5, 3
_STEPS = 10
"""Rows of a group: numbered rows whose groups all become complete."""
_PATIENCE = 420.0


def script(rate: int) -> str:
    """A job whose state grows for an hour. Every group has the same number of rows in the end."""
    return (
        f"CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond {rate});\n"
        f"CREATE QUERY by_key AS SELECT value DIV {_STEPS} AS k, COUNT(*) AS n FROM ticks [RANGE 1 HOUR] "
        f"GROUP BY value DIV {_STEPS}\nINTO changelog (path 'out', compact 0) MODE net TRIGGER '2 seconds';\n"
    )


def measure(rate: int, room: int) -> Figures:
    """Run the job, limit its memory to what it has and `room` megabytes, and start it again without a limit once it has failed."""
    with scratch() as home, _cgroup() as group:
        text = script(rate)
        enter = ["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        with running_job(home, text, rate, enter) as (process, log):
            await_batch(process, log)
            _await_batches(process, log, _SETTLED)
            limit = _resident(group) + room * MEGABYTE
            (group / "memory.limit_in_bytes").write_text(str(limit))
            begun = time.monotonic()
            try:
                code = process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                raise SashError("the job did not reach the limit: raise --rate or lower --room") from None
            seconds = time.monotonic() - begun
            events = events_of(log)
            last = [event for event in events if event.get("event") == "failed"]
            found: Figures = {
                "rows_per_s": rate,
                "limit_mb": round(limit / MEGABYTE),
                "batches_before": sum(_is_batch(event) for event in events),
                "seconds_to_failure": round(seconds, 1),
                "killed_by_the_kernel": _killed(group),
                "exit_code": code,
                "reason": last[-1]["reason"] if last else "",
                "processes_left": len((group / "cgroup.procs").read_text().split()),
            }
        (home / "log.jsonl").rename(home / "log-1.jsonl")
        with running_job(home, text, rate) as (process, log):
            await_batch(process, log)
            _await_batches(process, log, _AFTERWARDS)
            process.send_signal(signal.SIGTERM)
            found["exit_code_afterwards"] = process.wait(180)
        rows, groups = checked(home / "out")
        return {**found, "rows": rows, "groups": groups}


@contextmanager
def _cgroup() -> Iterator[Path]:
    """A memory cgroup of its own; what is left in it at the end is killed."""
    group = _CGROUPS / f"sash-soak-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as problem:
        raise SashError(f"this needs cgroups of version 1, and root: {problem}") from None
    try:
        yield group
    finally:
        for number in (group / "cgroup.procs").read_text().split():
            try:
                psutil.Process(int(number)).kill()
            except psutil.NoSuchProcess:
                continue
        until = time.monotonic() + 10
        while (group / "cgroup.procs").read_text().strip() and time.monotonic() < until:
            time.sleep(0.1)
        group.rmdir()


def _resident(group: Path) -> int:
    """The memory of the processes, without that of files, which the kernel can take back."""
    lines = (group / "memory.stat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("total_rss "))


def _killed(group: Path) -> int:
    """How many processes the kernel has killed."""
    lines = (group / "memory.oom_control").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), -1)


def _is_batch(event: dict[str, Any]) -> bool:
    return event.get("event") == "batch" and event.get("query") == "by_key"


def _await_batches(process: subprocess.Popen[bytes], log: Path, count: int) -> None:
    while sum(map(_is_batch, events_of(log))) < count:
        if process.poll() is not None:
            raise SashError(f"the job ended: {log.read_text(encoding='utf-8')[-2_000:]}")
        time.sleep(0.5)


def checked(folder: Path) -> tuple[int, int]:
    """The rows and groups that the changelog has: all groups but the last are complete, and none is twice."""
    balance: Counter[tuple[int, int]] = Counter()
    for path in sorted(folder.glob("batch=*/*.parquet")):
        table = pq.read_table(path, columns=["_op", "k", "n"], partitioning=None)
        for op, key, count in zip(*(table[name].to_pylist() for name in ("_op", "k", "n")), strict=True):
            balance[key, count] += 1 if op == "+" else -1
    wrong = {pair: times for pair, times in balance.items() if times not in (0, 1)}
    if wrong:
        raise SashError(
            f"groups that are told twice, or taken back without being there: {dict(list(wrong.items())[:5])}"
        )
    groups = dict(pair for pair, times in balance.items() if times)
    if len(groups) != sum(balance.values()):
        raise SashError("a group has two counts at once")
    last = max(groups)
    for key in range(last):
        if groups.get(key) != _STEPS:
            raise SashError(f"group {key} has {groups.get(key)} rows instead of {_STEPS}")
    return _STEPS * last + groups[last], len(groups)


def table(found: Figures) -> Table:
    """The figures as a table."""
    shown = Table("", "", title="Soak with limited memory")
    for name, value in found.items():
        shown.add_row(name.replace("_", " "), json.dumps(value) if isinstance(value, str) else f"{value:,}")
    return shown
