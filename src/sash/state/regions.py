"""Independently growing regions of one flat array, so that a kernel can access the state of any number of inputs."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from sash.state.memory import Array, Ints, Memory

_LEAST: Final = 256


class Regions:
    """Region r starts at `starts[r]` in `data`. A full region moves to the end of the array with twice the size."""

    def __init__(self, memory: Memory, count: int, dtype: npt.DTypeLike = np.int64) -> None:
        self._memory = memory
        self._count = count
        self._dtype = dtype
        self._places = memory.array("places", np.int64, 2 * count + 1)
        self.data: Array = memory.array("data", dtype, 1024)

    @property
    def starts(self) -> Ints:
        return self._places[: self._count]

    def reserve(self, region: int, size: int) -> None:
        """Reserve `size` words in a region; its contents are kept, and new words are zero."""
        capacity = int(self._places[self._count + region])
        if size <= capacity:
            return
        start, used = int(self._places[region]), int(self._places[-1])
        wanted = max(2 * capacity, size, _LEAST)
        if used + wanted > len(self.data):
            self.data = self._memory.grow("data", self._dtype, max(2 * len(self.data), used + wanted))
        self.data[used : used + capacity] = self.data[start : start + capacity]
        self._places[region] = used
        self._places[self._count + region] = wanted
        self._places[-1] = used + wanted
