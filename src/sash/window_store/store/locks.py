"""File locks between the writer of a window store and its readers, in this process or others.

A manifest is replaced under an exclusive lock. A serial query holds the shared lock as long as it runs, other queries
only while they begin and commit. The operating system frees the locks of a process that dies.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sash.errors import StoreError

_SWAP, _TURN, _WRITER = "swap.lock", "turn.lock", "writer.lock"


@contextmanager
def _held(path: Path, mode: int) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, mode)
        yield
    finally:
        os.close(handle)


class StoreLock:
    """The lock of one store in this process. The scheduler takes it around updates and commits.

    The shared lock can be taken repeatedly in one process; the last release frees it. A waiting writer blocks new
    readers, so readers cannot starve it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = 0
        self._handle = -1
        self._guard = threading.Lock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclude all shared holders, to replace the manifest."""
        with _held(self._root / _TURN, fcntl.LOCK_EX), _held(self._root / _SWAP, fcntl.LOCK_EX):
            yield

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Prevent the manifest from being replaced."""
        with self._guard:
            if self._count == 0:
                with _held(self._root / _TURN, fcntl.LOCK_EX):
                    self._handle = os.open(self._root / _SWAP, os.O_RDWR | os.O_CREAT, 0o666)
                    fcntl.flock(self._handle, fcntl.LOCK_SH)
            self._count += 1
        try:
            yield
        finally:
            with self._guard:
                self._count -= 1
                if self._count == 0:
                    os.close(self._handle)


class WriterLock:
    """Ensures that a store has one writer at a time."""

    def __init__(self, root: Path) -> None:
        self._handle = os.open(root / _WRITER, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise StoreError(
                f"the window store in {root} already has a writer: stop that query, or keep the window in another path"
            ) from None

    def release(self) -> None:
        """Allow another writer."""
        os.close(self._handle)
