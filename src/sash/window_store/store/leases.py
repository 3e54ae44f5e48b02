"""Leases: locked files by which readers keep replaced sub-windows from being deleted.

A lease that is not locked belongs to a reader that has ended, in this process or another, and is ignored.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

_NO_LEASE = 2**62
"""Higher than the number of any sub-window."""


class Lease:
    """Keeps all sub-windows from number `oldest` on. Take it under the shared lock of the store."""

    def __init__(self, root: Path, oldest: int) -> None:
        directory = root / "leases"
        directory.mkdir(exist_ok=True)
        self._path = directory / uuid.uuid4().hex
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.keep_from(oldest)

    def keep_from(self, number: int) -> None:
        """Keep only the sub-windows from this number on, which must not be lower than before."""
        os.pwrite(self._handle, f"{number:>20}".encode(), 0)

    def release(self) -> None:
        """Give up the lease. Releasing it twice has no effect."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1


def oldest_leased(root: Path) -> int:
    """The oldest sub-window that a live reader has leased. Leases of ended readers are removed."""
    return min(_leased(root), default=_NO_LEASE)


def _leased(root: Path) -> Iterator[int]:
    directory = root / "leases"
    for path in directory.iterdir() if directory.exists() else ():
        try:
            handle = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            written = os.pread(handle, 20, 0)
            # An empty lease is being taken by a reader that has not written its number yet: keep everything.
            yield int(written) if written else 0
        else:
            path.unlink(missing_ok=True)
        finally:
            os.close(handle)
