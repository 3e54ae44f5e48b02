"""Leases: what a reader still needs of the sub-windows that have been replaced, said in a file that it holds locked.

A lease whose lock is free belongs to a reader that is gone, in this process or another, however it went.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

NOTHING = 2**62
"""The need of a reader that can do without any replaced sub-window."""


class Lease:
    """Keeps all sub-windows from number `needs` on; take it, and change it, while the manifest is held still."""

    def __init__(self, root: Path, needs: int = NOTHING) -> None:
        directory = root / "leases"
        directory.mkdir(exist_ok=True)
        self._path = directory / uuid.uuid4().hex
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.need(needs)

    def need(self, number: int) -> None:
        """From now on, keep the sub-windows from this number on."""
        os.pwrite(self._handle, f"{number:>20}".encode(), 0)

    def release(self) -> None:
        """Need nothing any more."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def lowest_need(root: Path) -> int:
    """The lowest number that a living reader needs; leases of the dead are removed."""
    return min(_needs(root), default=NOTHING)


def _needs(root: Path) -> Iterator[int]:
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
            # A lease that says nothing yet is being taken by someone who holds the manifest still, so not now.
            yield int(written) if written else 0
        else:
            path.unlink(missing_ok=True)
        finally:
            os.close(handle)
