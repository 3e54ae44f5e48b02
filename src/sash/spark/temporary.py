"""Temporary folders that end with the process: removed when it ends, or by the next start if it was killed.

The owner of a folder holds a lock on a file in it, which the operating system frees with the process, so a folder whose
file can be locked is abandoned.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

Kind = Literal["checkpoint", "window"]
_KINDS: tuple[Kind, ...] = ("checkpoint", "window")
_OWNER = "sash.owner"


class TemporaryFolder:
    """A folder `sash-KIND-...` in the directory for temporary files."""

    def __init__(self, kind: Kind) -> None:
        name, base = f"sash-{kind}-{secrets.token_hex(6)}", Path(tempfile.gettempdir())
        draft = base / f".{name}"
        draft.mkdir(mode=0o700)
        self._lock = os.open(draft / _OWNER, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Only a folder whose lock is held gets the name by which others look for abandoned ones.
        self.path = draft.rename(base / name)
        self.before_exit: Callable[[], None] | None = None
        self._process = os.getpid()
        atexit.register(self._exit)

    def remove(self) -> None:
        """Remove the folder; to remove it twice has no effect."""
        atexit.unregister(self._exit)
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _exit(self) -> None:
        if os.getpid() != self._process:  # a fork of the owner
            return
        if self.before_exit is not None:
            with suppress(Exception):  # Spark may have ended already
                self.before_exit()
        self.remove()


def remove_abandoned() -> list[Path]:
    """Remove the temporary folders of processes that were killed, and return their paths."""
    base = Path(tempfile.gettempdir())
    return [folder for kind in _KINDS for folder in base.glob(f"sash-{kind}-*") if _remove_abandoned(folder)]


def _remove_abandoned(folder: Path) -> bool:
    try:
        lock = os.open(folder / _OWNER, os.O_RDWR)
    except OSError:  # another user's, or not made here
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        shutil.rmtree(folder, ignore_errors=True)
        return True
    finally:
        os.close(lock)
