"""The index of a user's jobs on this machine: an entry per job, by which other processes find it.

An entry is a file in the user's runtime folder. It names the job's lock, which guards its checkpoint and which the
operating system frees when the job's process ends: an entry whose lock nobody holds is that of a job that crashed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sash.errors import ControlError
from sash.file_lock import lock_holder
from sash.private_folders import make_private

RUN_FOLDER = ".run"
"""The folder of a checkpoint for what exists only while a job runs, and for its log."""

LOCK = "sash.lock"
LOG = "job.log"
_SOCKET = "control.sock"
_LONGEST_PATH = 100
"""The number of bytes of the path of a socket; Linux allows 107, macOS 103."""

JobState = Literal["running", "failed", "crashed"]


@dataclass(frozen=True)
class JobEntry:
    """A job of this machine: who runs it since when, and the files by which others reach it."""

    name: str
    pid: int
    checkpoint: str
    since: str
    socket: str
    lock: str
    log: str
    error: str | None = None
    """Why it failed."""
    row: str | None = None
    """The row that made it fail."""

    @property
    def state(self) -> JobState:
        """Whether its process runs, by its lock; one that ended without a word has crashed."""
        if lock_holder(Path(self.lock)) is not None:
            return "running"
        return "crashed" if self.error is None else "failed"

    def listed(self) -> JobEntry | None:
        """The job that runs now, or failed, where this one did; None if that was stopped."""
        return _read(self._file)

    def list(self) -> None:
        """Write the entry to the index; a crashed job of the same checkpoint is replaced."""
        file = self._file
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(file)

    def unlist(self) -> None:
        """Remove the entry from the index."""
        with suppress(OSError):
            self._file.unlink()

    @property
    def _file(self) -> Path:
        return runtime_folder() / f"{_digest(self.lock)}.json"


def runtime_folder() -> Path:
    """The user's folder for what exists only while jobs run; nobody else may read it."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base, "sash") if base and Path(base).is_dir() else Path(tempfile.gettempdir(), f"sash-{os.getuid()}")
    try:
        make_private(folder)
        found = folder.lstat()
    except OSError as problem:
        raise ControlError(f"the folder {folder} cannot be used: {problem.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ControlError(f"the folder {folder} must belong to you alone: remove it, or set XDG_RUNTIME_DIR")
    return folder


def run_folder(checkpoint: str, local: Path | None) -> Path:
    """The folder of a job's log; `local` is the checkpoint's folder if it is on this machine's file systems."""
    return runtime_folder() / _digest(checkpoint) if local is None else local.resolve() / RUN_FOLDER


def lock_path(checkpoint: str, local: Path | None) -> Path:
    """The path of the lock of a job: in the checkpoint, or in its run folder if the checkpoint is elsewhere."""
    return (run_folder(checkpoint, local) if local is None else local.resolve()) / LOCK


def socket_path(checkpoint: str, local: Path | None) -> Path:
    """The path of the socket of a job: in its run folder, or in the runtime folder if that path would be too long."""
    path = run_folder(checkpoint, local) / _SOCKET
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    return runtime_folder() / f"{_digest(checkpoint if local is None else str(local.resolve()))}.sock"


def known_jobs() -> list[JobEntry]:
    """The entries of this user's jobs on this machine, by name; those whose checkpoint is gone with its lock are removed."""
    found = []
    for file in runtime_folder().glob("*.json"):
        entry = _read(file)
        if entry is None:
            continue
        if Path(entry.lock).exists():
            found.append(entry)
        else:
            file.unlink(missing_ok=True)
    return sorted(found, key=lambda entry: (entry.name, entry.checkpoint))


def _read(file: Path) -> JobEntry | None:
    """The entry in a file; None if its job ended just now, or is of another version."""
    try:
        return JobEntry(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def find_job(name: str) -> JobEntry:
    """The job of this name, or on this checkpoint. The name of a file may be given without its ending.

    Where several have the name, a single running one is meant.
    """
    known = known_jobs()
    found = [
        entry for entry in known if name in (entry.checkpoint, _resolved(entry.checkpoint)) or _is_path(name, entry)
    ]
    found = found or [entry for entry in known if name in (entry.name, Path(entry.name).stem)]
    running = [entry for entry in found if entry.state == "running"]
    found = running if len(running) == 1 else found
    if not found:
        others = f"; there are {', '.join(sorted({entry.name for entry in known}))}" if known else ""
        raise ControlError(f"there is no job {name} of yours on this machine{others}")
    if len(found) > 1:
        raise ControlError(
            f"{len(found)} jobs are called {name}: name a checkpoint, one of {', '.join(entry.checkpoint for entry in found)}"
        )
    return found[0]


def _is_path(name: str, entry: JobEntry) -> bool:
    return str(Path(name).resolve()) in (_resolved(entry.checkpoint), str(Path(entry.checkpoint).with_suffix(".sql")))


def _resolved(checkpoint: str) -> str:
    return checkpoint if "://" in checkpoint else str(Path(checkpoint).resolve())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
