"""Locks between the writer of a window store and its readers, in this process or in others.

The swap of a manifest excludes readers that hold the window still: a serial query for as long as it runs, others only
while they begin or commit. A process that dies lets go of its locks.
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
def _held(path: Path, how: int) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


class StoreLock:
    """One store's lock, as this process sees it; the scheduler of a window takes it around swaps and commits.

    Whoever holds it shared in this process may take it shared again: it is let go of with the last of them. A writer
    that waits keeps new readers back, so that they cannot starve it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = 0
        self._handle = -1
        self._guard = threading.Lock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep everyone away who holds the manifest still."""
        with _held(self._root / _TURN, fcntl.LOCK_EX), _held(self._root / _SWAP, fcntl.LOCK_EX):
            yield

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Keep the manifest from being replaced."""
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
    """A store has one writer at a time."""

    def __init__(self, root: Path) -> None:
        self._handle = os.open(root / _WRITER, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise StoreError(
                f"the window store in {root} is being written already: stop that query, or keep in another path"
            ) from None

    def release(self) -> None:
        """Let another one write."""
        os.close(self._handle)
