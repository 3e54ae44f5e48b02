"""`sash logs`: the log of a job, which may run in another process or have ended."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from sash.errors import ControlError
from sash.file_lock import lock_holder
from sash.job_index import LOCK, LOG, RUN_FOLDER, find_job

_POLL = 0.25


def show_log(job: str, lines: int, *, follow: bool) -> None:
    """Print the last lines of a job's log; with `follow` also those that come, until the job ends."""
    log, lock = _files(job)
    try:
        for line in last_lines(log, lines):
            sys.stdout.write(line)
        if follow:
            for line in following(log, lambda: lock_holder(lock) is not None):
                sys.stdout.write(line)
                sys.stdout.flush()
    except FileNotFoundError:
        raise ControlError(f"there is no log of {job}: nothing has run there") from None


def _files(job: str) -> tuple[Path, Path]:
    """The log and the lock of a job: by its name, or in the folder of its checkpoint."""
    local = Path(job)
    if (local / RUN_FOLDER / LOG).exists():
        return local / RUN_FOLDER / LOG, local / LOCK
    entry = find_job(job)
    return Path(entry.log), Path(entry.lock)


def last_lines(log: Path, number: int) -> list[str]:
    """The last lines of a log, of which older files are called `job.log.1` and so on."""
    found: deque[str] = deque(maxlen=number)
    older = sorted(log.parent.glob(f"{log.name}.*"), key=lambda file: -int(file.suffix[1:]))
    for file in (*older, log):
        with file.open(encoding="utf-8", errors="replace") as lines:
            found.extend(lines)
    return list(found)


def following(log: Path, runs: Callable[[], bool]) -> Iterator[str]:
    """The lines that are added to a log from now on, also after its file is replaced, as long as the job runs."""
    source = log.open(encoding="utf-8", errors="replace")
    source.seek(0, 2)
    goes_on = True
    try:
        while goes_on:
            goes_on = runs()
            yield from _complete(source)
            if log.exists() and not os.path.samestat(log.stat(), os.fstat(source.fileno())):
                source.close()
                source = log.open(encoding="utf-8", errors="replace")
            elif goes_on:
                time.sleep(_POLL)
        yield from _complete(source)
    finally:
        source.close()


def _complete(source: TextIO) -> Iterator[str]:
    """The lines that have been written completely."""
    while True:
        at = source.tell()
        line = source.readline()
        if not line.endswith("\n"):
            source.seek(at)
            return
        yield line
