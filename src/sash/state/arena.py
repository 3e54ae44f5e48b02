"""The arena: a shard's working state in mapped files, a cache that any process on the machine can attach.

It is used only if it was closed cleanly under the nonce that the state store has for the shard. Otherwise it is cleared,
and its owner rebuilds it. A lock prevents use by two processes at once.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from sash.state.memory import MappedMemory

_LOCK, _MARK, _DATA = "lock", "mark", "data"
_DIRTY = "dirty"


class Arena:
    """Locked while it is open. If `fresh`, it is empty and must be built; `seal` marks its contents as complete."""

    def __init__(self, directory: Path, nonce: str | None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._lock = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.fresh = nonce is None or self._read_mark() != nonce
        data = directory / _DATA
        if self.fresh:
            shutil.rmtree(data, ignore_errors=True)
        self._write_mark(_DIRTY)
        self.memory = MappedMemory(data)

    def _read_mark(self) -> str | None:
        try:
            return (self._directory / _MARK).read_text()
        except OSError:
            return None

    def _write_mark(self, text: str) -> None:
        (self._directory / _MARK).write_text(text)

    def seal(self, nonce: str) -> None:
        """Mark the contents as those of the state that is stored under this nonce."""
        self._write_mark(nonce)

    def close(self) -> None:
        """Release the lock for other processes."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
