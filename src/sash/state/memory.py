"""The memory of operators: named flat arrays, in the heap or in memory-mapped files that any worker can attach.

`Arrays` grow together; `Regions` grow independently in one array, so that a kernel can access any number of inputs.
"""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from sash.private_folders import make_private

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class Memory(ABC):
    """A namespace of flat arrays. New elements are zero."""

    @abstractmethod
    def array(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        """The array of that name: the existing one, whatever its size, or a new one with `size` elements."""

    @abstractmethod
    def grow(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        """The array grown to at least `size` elements with its contents; earlier views are invalid."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held by all arrays."""

    def scope(self, name: str) -> Memory:
        """The same memory with every name under a prefix."""
        return _Scope(self, name)


class HeapMemory(Memory):
    """Arrays of this process."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def array(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        if name not in self._arrays:
            self._arrays[name] = np.zeros(size, dtype)
        return self._arrays[name]

    def grow(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        old = self._arrays[name]
        if len(old) >= size:
            return old
        new = np.zeros(size, dtype)
        new[: len(old)] = old
        self._arrays[name] = new
        return new

    @property
    def nbytes(self) -> int:
        return sum(self.sizes.values())

    @property
    def sizes(self) -> dict[str, int]:
        """The arrays by name, with their sizes in bytes."""
        return {name: array.nbytes for name, array in self._arrays.items()}


class MappedMemory(Memory):
    """Arrays in files of one directory, one file each; other processes can attach them.

    A file that this process attached before is not mapped again: the first access to a page costs more than reading it,
    and a batch accesses as many pages as it has keys.
    """

    _mapped: ClassVar[dict[str, dict[str, tuple[tuple[int, ...], mmap.mmap]]]] = {}

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        make_private(directory)
        self._prefix = f"{directory}{os.sep}"
        self._known = self._mapped.setdefault(str(directory), {})

    @classmethod
    def release_deleted(cls) -> None:
        """Unmap the files of directories that no longer exist."""
        for directory in [directory for directory in cls._mapped if not os.path.exists(directory)]:  # noqa: PTH110  (for speed)
            del cls._mapped[directory]

    def array(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        try:
            return self._map(name, dtype)
        except FileNotFoundError:
            with (self._directory / name).open("wb") as file:
                file.truncate(max(size, 1) * np.dtype(dtype).itemsize)
        return self._map(name, dtype)

    def grow(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        path = self._directory / name
        wanted = size * np.dtype(dtype).itemsize
        if path.stat().st_size < wanted:
            with path.open("r+b") as file:
                file.truncate(wanted)
        return self._map(name, dtype)

    def _map(self, name: str, dtype: npt.DTypeLike) -> Array:
        found = os.stat(self._prefix + name)  # noqa: PTH116  (for speed: a job has thousands of arrays)
        identity = (found.st_dev, found.st_ino, found.st_size)
        known = self._known.get(name)
        if known is None or known[0] != identity:
            with (self._directory / name).open("r+b") as file:
                known = self._known[name] = identity, mmap.mmap(file.fileno(), 0)
        return np.frombuffer(known[1], dtype)

    @property
    def nbytes(self) -> int:
        return sum(self.files.values())

    @property
    def files(self) -> dict[str, int]:
        """The files of the memory by name, with their sizes in bytes."""
        return file_sizes(self._directory)

    def read(self, name: str, start: int, size: int) -> bytes:
        """Some bytes of a file."""
        with (self._directory / name).open("rb") as file:
            file.seek(start)
            return file.read(size)

    def write(self, name: str, start: int, data: bytes) -> None:
        """Write bytes to a file, which is created if necessary; only for a memory without attached arrays."""
        path = self._directory / name
        with path.open("r+b" if path.exists() else "wb") as file:
            file.seek(start)
            file.write(data)


def file_sizes(directory: Path) -> dict[str, int]:
    """The files of a directory by name, with their sizes in bytes."""
    with os.scandir(directory) as entries:
        return dict(sorted((entry.name, entry.stat().st_size) for entry in entries))


class _Scope(Memory):
    def __init__(self, parent: Memory, prefix: str) -> None:
        self._parent = parent
        self._prefix = prefix

    def array(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        return self._parent.array(f"{self._prefix}.{name}", dtype, size)

    def grow(self, name: str, dtype: npt.DTypeLike, size: int) -> Array:
        return self._parent.grow(f"{self._prefix}.{name}", dtype, size)

    @property
    def nbytes(self) -> int:
        return self._parent.nbytes


class Arrays:
    """Parallel arrays of one capacity, grown together by doubling; `arrays["exp"]` is the current view."""

    def __init__(self, memory: Memory, dtypes: Mapping[str, npt.DTypeLike], capacity: int = 1024) -> None:
        self._memory = memory
        self._dtypes = dict(dtypes)
        self._attach({name: memory.array(name, dtype, capacity) for name, dtype in self._dtypes.items()})

    def _attach(self, views: dict[str, Array]) -> None:
        self._views = views
        self.capacity = min(map(len, views.values()))

    def __getitem__(self, name: str) -> Array:
        return self._views[name]

    def reserve(self, size: int) -> None:
        """Reserve space for `size` elements in every array."""
        capacity = self.capacity
        if size <= capacity:
            return
        while capacity < size:
            capacity *= 2
        self._attach({name: self._memory.grow(name, dtype, capacity) for name, dtype in self._dtypes.items()})


_LEAST: Final = 256


class Regions:
    """Region r starts at `starts[r]` in `data`. A full region moves to the end of the array with twice the size."""

    def __init__(self, memory: Memory, count: int, dtype: npt.DTypeLike = np.int64) -> None:
        self._memory = memory
        self._count = count
        self._dtype = dtype
        self._positions = memory.array("places", np.int64, 2 * count + 1)
        self.data: Array = memory.array("data", dtype, 1024)

    @property
    def starts(self) -> Ints:
        return self._positions[: self._count]

    def reserve(self, region: int, size: int) -> None:
        """Reserve `size` words in a region; its contents are kept, and new words are zero."""
        capacity = int(self._positions[self._count + region])
        if size <= capacity:
            return
        start, used = int(self._positions[region]), int(self._positions[-1])
        wanted = max(2 * capacity, size, _LEAST)
        if used + wanted > len(self.data):
            self.data = self._memory.grow("data", self._dtype, max(2 * len(self.data), used + wanted))
        self.data[used : used + capacity] = self.data[start : start + capacity]
        self._positions[region] = used
        self._positions[self._count + region] = wanted
        self._positions[-1] = used + wanted
