"""Leases: locked files by which readers keep replaced sub-windows from being deleted.

A lease that is not locked belongs to a reader that has ended, in this process or another, and is ignored.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

NO_SUB_WINDOW = 2**62
"""The lease of a reader that needs no replaced sub-window."""


class Lease:
    """Keeps all sub-windows from number `oldest` on. Take and change it only under the shared lock of the store."""

    def __init__(self, root: Path, oldest: int = NO_SUB_WINDOW) -> None:
        directory = root / "leases"
        directory.mkdir(exist_ok=True)
        self._path = directory / uuid.uuid4().hex
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.keep_from(oldest)

    def keep_from(self, number: int) -> None:
        """Keep the sub-windows from this number on."""
        os.pwrite(self._handle, f"{number:>20}".encode(), 0)

    def release(self) -> None:
        """Give up the lease. Releasing it twice has no effect."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def oldest_leased(root: Path) -> int:
    """The oldest sub-window that a live reader has leased. Leases of ended readers are removed."""
    return min(_leased(root), default=NO_SUB_WINDOW)


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
