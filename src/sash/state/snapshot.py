"""An array snapshot: a shard's whole memory in a store of chunks; the log then needs only the rows accepted since.

It is for shards with an input whose rows never expire: their log would grow with the input, although the state of the
operators does not. A snapshot is due when the log is larger than both a minimum and the last snapshot. So the size of the
log depends on the state, and the amortized cost of a batch on its own size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from sash.state.log import CHUNK_BYTES, Chunks
from sash.state.memory import MappedMemory

LOG_BYTES = 16 << 20
"""A log of fewer bytes than this needs no snapshot."""

_COMPRESSION: Final = "zstd"


@dataclass
class StoredFile:
    """The directory entry of a file: its name, its bytes, and the chunks that hold them, in order."""

    name: str
    size: int
    chunks: list[int]


class ArraySnapshot:
    """The last snapshot of a memory, if there is one."""

    def __init__(self, chunks: Chunks, directory: dict[str, Any] | None = None) -> None:
        self._store = chunks
        known = directory or {"size": 0, "files": []}
        self._size = int(known["size"])
        self._files = [StoredFile(*entry) for entry in known["files"]]

    @property
    def directory(self) -> dict[str, Any]:
        """The directory that is needed to read the snapshot, as plain values."""
        return {"size": self._size, "files": [[f.name, f.size, f.chunks] for f in self._files]}

    @property
    def size(self) -> int:
        """Bytes in the store."""
        return self._size

    def due(self, log: int, floor: int = LOG_BYTES) -> bool:
        """Whether a log of that many bytes should be replaced by a new snapshot."""
        return log > max(floor, self._size)

    def write(self, memory: MappedMemory, number: Callable[[], int]) -> None:
        """Replace the last snapshot by one of the memory as it is now; `number` returns numbers for new chunks."""
        old, self._files, self._size = self._files, [], 0
        for name, size in memory.files.items():
            file = StoredFile(name, size, [])
            for start in range(0, size, CHUNK_BYTES):
                piece = memory.read(name, start, min(CHUNK_BYTES, size - start))
                data: bytes = pa.compress(piece, codec=_COMPRESSION, asbytes=True)
                file.chunks.append(number())
                self._store.put(file.chunks[-1], data)
                self._size += len(data)
            self._files.append(file)
        for chunk in (chunk for file in old for chunk in file.chunks):
            self._store.remove(chunk)

    def load(self, memory: MappedMemory) -> None:
        """Restore an empty memory from the snapshot; without a snapshot it stays empty."""
        for file in self._files:
            starts = range(0, file.size, CHUNK_BYTES)
            for start, chunk in zip(starts, file.chunks, strict=True):
                size = min(CHUNK_BYTES, file.size - start)
                data = self._store.get(chunk)
                memory.write(file.name, start, pa.decompress(data, size, codec=_COMPRESSION, asbytes=True))
