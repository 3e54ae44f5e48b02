"""File locks between the writer of a window store and its readers, in this process or others.

A manifest is replaced under an exclusive lock. A serial query holds the shared lock as long as it runs, other queries
only while they begin and commit. The operating system frees the locks of a process that dies.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sash.errors import StoreError
from sash.private_folders import make_private

_SWAP, _TURN, _WRITER = "swap.lock", "turn.lock", "writer.lock"
_NO_LEASE = 2**62
"""Higher than the number of any sub-window."""


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
            writer = os.pread(self._handle, 1_000, 0).decode()
            os.close(self._handle)
            raise StoreError(
                f"the window store in {root} already has a writer ({writer or 'another process'}): stop that query, or keep the "
                "window in another path"
            ) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def release(self) -> None:
        """Allow another writer."""
        os.close(self._handle)


class Lease:
    """A locked file by which a reader keeps all sub-windows from number `oldest` on from being deleted.

    Take it under the shared lock of the store. A lease that is not locked belongs to a reader that has ended.
    """

    def __init__(self, root: Path, oldest: int) -> None:
        directory = root / "leases"
        make_private(directory)
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


def is_leased(root: Path) -> bool:
    """Whether a live reader has a lease."""
    return any(True for _ in _leased(root))


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
