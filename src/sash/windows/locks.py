"""Locks between the writer of a window store and its readers, in this process or in others.

The swap of a manifest excludes readers that hold the window still: a serial query for as long as it runs, others only
while they begin or commit. A process that dies lets go of its locks.
"""

from __future__ import annotations

import fcntl
import os
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


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """Keep readers that hold the window still away; new ones wait behind this, so that they cannot starve it."""
    with _held(root / _TURN, fcntl.LOCK_EX), _held(root / _SWAP, fcntl.LOCK_EX):
        yield


@contextmanager
def still(root: Path) -> Iterator[None]:
    """Keep the manifest from being replaced."""
    with _held(root / _TURN, fcntl.LOCK_EX):
        handle = os.open(root / _SWAP, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(handle, fcntl.LOCK_SH)
    try:
        yield
    finally:
        os.close(handle)


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
