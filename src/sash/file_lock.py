"""A lock on a file, which the operating system frees when the process that holds it ends, however it ends."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

_MOST_BYTES = 10_000


class LockHeldError(Exception):
    """Another process holds the lock; the error's text is what that process wrote about itself."""


class FileLock:
    """Holds the lock on a file, which is created if necessary, until `release`; `owner` describes the holder to others."""

    def __init__(self, path: Path, owner: str) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found = os.pread(self._handle, _MOST_BYTES, 0).decode()
            os.close(self._handle)
            raise LockHeldError(found) from None
        except OSError as problem:
            logging.getLogger("sash").warning("%s cannot be locked: %s", path, problem.strerror)
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, owner.encode(), 0)

    def release(self) -> None:
        """Free the lock; the file stays, empty. To release it twice has no effect."""
        if self._handle >= 0:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = -1


def lock_holder(path: Path) -> str | None:
    """What the process that holds the lock wrote about itself; None if no process holds it."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(handle, _MOST_BYTES, 0).decode()
    except OSError:  # no locks on this file system
        return None
    finally:
        os.close(handle)
    return None
