"""A job that is killed by SIGKILL at random moments, and goes on from its checkpoint."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sash.errors import SashError


def start(home: Path, options: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Run `job.sql` of a folder, in a process group of its own, with its checkpoint in `state`; its output goes to `log`."""
    command = [str(Path(sys.executable).with_name("sash")), "run", "job.sql", *options, "--checkpoint", "state"]
    with (home / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=home, stdout=log, stderr=log, start_new_session=True)  # noqa: S603


def killed(home: Path, rnd: random.Random, options: Sequence[str] = ()) -> int:
    """Start the job, kill it at a random moment after its next batches; returns how many batches had been committed."""
    before, job = committed(home), start(home, options)
    while committed(home) < before + 2:
        if job.poll() is not None:
            raise SashError(f"the job ended before it was killed: {(home / 'log').read_text()[-2000:]}")
        time.sleep(0.05)
    time.sleep(rnd.uniform(0, 2))
    if job.poll() is not None:
        raise SashError("the job ended before it was killed: give it more rows")
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    return committed(home)


def committed(home: Path) -> int:
    """The number of batches that have been committed."""
    numbers = [int(path.name) for path in (home / "state").rglob("commits/*") if path.name.isdigit()]
    return max(numbers, default=-1) + 1
