"""The presence of a running job on its machine: it holds its checkpoint, is listed, and keeps its log for others to read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sash.cli.job_log import JobLog
from sash.errors import ControlError
from sash.job_index import LOG, JobEntry, lock_path, run_folder, socket_path
from sash.spark.checkpoint_lock import lock_run
from sash.spark.folders import local_path


def job_entry(name: str, checkpoint: str) -> JobEntry:
    """The entry of a job of this process."""
    local = local_path(checkpoint)
    return JobEntry(
        name,
        os.getpid(),
        checkpoint if local is None else str(local.resolve()),
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        str(socket_path(checkpoint, local)),
        str(lock_path(checkpoint, local)),
        str(run_folder(checkpoint, local) / LOG),
    )


@contextmanager
def present(name: str, checkpoint: str, log: JobLog) -> Iterator[JobEntry]:
    """Lock the checkpoint, list the job, and write its log to a file too, as long as this lasts.

    A job whose log has an error of its own stays listed, with that error.
    """
    entry = job_entry(name, checkpoint)
    lock = lock_run(Path(entry.lock), checkpoint, name)
    try:
        with log.kept_in(Path(entry.log)):
            with _warned(log):
                entry.list()
            yield entry
    finally:
        with suppress(ControlError, OSError):
            entry.unlist() if log.error is None else replace(entry, error=log.error, row=log.row).list()
        lock.release()


@contextmanager
def _warned(log: JobLog) -> Iterator[None]:
    try:
        yield
    except (ControlError, OSError) as problem:
        log.write_warning(f"{problem}: sash ps cannot list this job")
