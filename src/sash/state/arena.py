"""The arena: the working state of a shard's stages in mapped files, a cache that any process on the machine can attach.

It is used only if it was closed cleanly under the nonce that the state store has for the shard. Otherwise it is cleared,
and its owner rebuilds it. A lock prevents use by two processes at once. It is in a folder for temporary files, from which
other programs may delete or write some: the files of a part, their sizes and the times of their last changes are compared with
those at the time when it was sealed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import zlib
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
        return (directory / _MARK).read_text().partition(" ")[0] == f"{_LAYOUT}:{nonce}"
    except OSError:
        return False


class Arena:
    """Locked while it is open. If `fresh`, it is empty and must be built; `seal` marks its contents as complete."""

    def __init__(self, directory: Path, nonce: str | None) -> None:
        make_private(directory)
        self._directory = directory
        self._lock = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        mark, self._data, self._sealed = self._read_mark()
        self._used: set[str] = set()
        self.fresh = nonce is None or mark != f"{_LAYOUT}:{nonce}"
        if self.fresh:
            # The files of a new arena have new paths, so that no process takes one that it has mapped for one of them.
            shutil.rmtree(directory / self._data, ignore_errors=True)
            self._data = f"{_DATA}-{secrets.token_hex(8)}"
            self._sealed = {}
        self._write_mark(_DIRTY)
        MappedMemory.release_deleted()

    def memory(self, name: str) -> MappedMemory:
        """The part of the arena with this name."""
        self._used.add(name)
        return MappedMemory(self._directory / self._data / name)

    def sizes(self, name: str) -> dict[str, int]:
        """The files of a part by name, with their sizes in bytes."""
        found = file_sizes(self._directory / self._data / name)
        self._sealed[name] = _digest(self._directory / self._data / name)
        self._used.discard(name)
        return found

    def has(self, name: str) -> bool:
        """Whether there is a part with this name, with all of the files that it was sealed with, as they were then."""
        if not self.exists(name):
            return False
        return name in self._used or self._sealed.get(name) == _digest(self._directory / self._data / name)

    def exists(self, name: str) -> bool:
        """Whether there is a part with this name, which may be damaged."""
        return (self._directory / self._data / name).is_dir()

    def take(self, name: str, other: Arena, new: str) -> None:
        """Move a part of another arena, which must be open, into this one under a new name."""
        make_private(self._directory / self._data)
        (other._directory / other._data / name).rename(self._directory / self._data / new)
        other._forget(name)
        self._used.add(new)

    def clear(self, name: str) -> None:
        """Delete a part of the arena."""
        shutil.rmtree(self._directory / self._data / name, ignore_errors=True)
        self._forget(name)

    def _forget(self, name: str) -> None:
        self._sealed.pop(name, None)
        self._used.discard(name)

    def _read_mark(self) -> tuple[str, str, dict[str, int]]:
        """Layout and nonce of the contents, the folder that holds them, and a digest of the files of each part."""
        try:
            mark, data, sealed = (self._directory / _MARK).read_text().split(" ", 2)
            return mark, data, json.loads(sealed)
        except (OSError, ValueError):
            return "", _DATA, {}

    def _write_mark(self, text: str) -> None:
        (self._directory / _MARK).write_text(f"{text} {self._data} {json.dumps(self._sealed)}")

    def seal(self, nonce: str) -> None:
        """Mark the contents as those of the state that is stored under this nonce."""
        for name in sorted(self._used):
            if self.exists(name):
                self.sizes(name)
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


def _digest(directory: Path) -> int:
    """A number that differs, but for an accident, if a file is missing, has another size, or was written since."""
    with os.scandir(directory) as entries:
        found = [(entry.name, status.st_size, status.st_mtime_ns) for entry in entries for status in (entry.stat(),)]
    return zlib.crc32(repr(sorted(found)).encode())
