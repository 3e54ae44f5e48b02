"""The arena: the working state of a shard's stages in mapped files, a cache that any process on the machine can attach.

It is used only if it was closed cleanly under the nonce that the state store has for the shard. Otherwise it is cleared,
and its owner rebuilds it. A lock prevents use by two processes at once.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from sash.private_folders import make_private
from sash.state.memory import MappedMemory, file_sizes

_LOCK, _MARK, _DATA = "lock", "mark", "data"
_DIRTY = "dirty"
_LAYOUT = 3
"""The version of the operators' arrays: an arena of another one is built again, from the log."""


def is_sealed(directory: Path, nonce: str) -> bool:
    """Whether a directory has an arena with this nonce."""
    try:
        return (directory / _MARK).read_text().partition(" ")[0] == nonce
    except OSError:
        return False


class Arena:
    """Locked while it is open. If `fresh`, it is empty and must be built; `seal` marks its contents as complete."""

    def __init__(self, directory: Path, nonce: str | None) -> None:
        make_private(directory)
        self._directory = directory
        self._lock = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        mark, self._data = self._read_mark()
        self.fresh = nonce is None or mark != f"{_LAYOUT}:{nonce}"
        if self.fresh:
            # The files of a new arena have new paths, so that no process takes one that it has mapped for one of them.
            shutil.rmtree(directory / self._data, ignore_errors=True)
            self._data = f"{_DATA}-{secrets.token_hex(8)}"
        self._write_mark(_DIRTY)
        MappedMemory.release_deleted()

    def memory(self, name: str) -> MappedMemory:
        """The part of the arena with this name."""
        return MappedMemory(self._directory / self._data / name)

    def sizes(self, name: str) -> dict[str, int]:
        """The files of a part by name, with their sizes in bytes."""
        return file_sizes(self._directory / self._data / name)

    def has(self, name: str) -> bool:
        """Whether there is a part with this name."""
        return (self._directory / self._data / name).is_dir()

    def take(self, name: str, other: Arena, new: str) -> None:
        """Move a part of another arena, which must be open, into this one under a new name."""
        make_private(self._directory / self._data)
        (other._directory / other._data / name).rename(self._directory / self._data / new)

    def clear(self, name: str) -> None:
        """Delete a part of the arena."""
        shutil.rmtree(self._directory / self._data / name, ignore_errors=True)

    def _read_mark(self) -> tuple[str, str]:
        """Layout and nonce of the contents, and the folder that holds them."""
        try:
            mark, _, data = (self._directory / _MARK).read_text().partition(" ")
        except OSError:
            return "", _DATA
        return mark, data or _DATA

    def _write_mark(self, text: str) -> None:
        (self._directory / _MARK).write_text(f"{text} {self._data}")

    def seal(self, nonce: str) -> None:
        """Mark the contents as those of the state that is stored under this nonce."""
        self._write_mark(f"{_LAYOUT}:{nonce}")

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
