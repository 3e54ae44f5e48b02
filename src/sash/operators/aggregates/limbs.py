"""A table of exact numbers by group, whose range of limbs widens when a value needs it."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.limbs import HEADER
from sash.state.memory import Ints, Memory

_LOW, _HIGH = 0, 1


class LimbTable:
    """Rows of HEADER counters (values, infinities and NaNs among them) and `width` limbs, the lowest being `low`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._range = memory.array("range", np.int64, 2)
        self.cells: Ints = memory.array("cells", np.int64, 1024)

    @property
    def low(self) -> int:
        return int(self._range[_LOW])

    @property
    def width(self) -> int:
        return int(self._range[_HIGH] - self._range[_LOW])

    def cover(self, low: int, high: int, groups: int) -> None:
        """Provide limbs `low` to `high` (exclusive; none if equal) and space for this many groups."""
        if low < high and not (self.width and self.low <= low and high <= self._range[_HIGH]):
            self._widen(low, high)
        needed = groups * (HEADER + self.width)
        if needed > len(self.cells):
            self.cells = self._memory.grow("cells", np.int64, max(needed, 2 * len(self.cells)))

    def _widen(self, low: int, high: int) -> None:
        """Copy all rows to a wider layout; this happens at most once per limb that a double can have."""
        stride = HEADER + self.width
        if self.width:
            low, high = min(low, self.low), max(high, int(self._range[_HIGH]))
        groups = len(self.cells) // stride
        old = self.cells[: groups * stride].reshape(groups, stride).copy()
        before = self.low - low if self.width else 0
        wider = HEADER + high - low
        self.cells = self._memory.grow("cells", np.int64, groups * wider)
        self.cells[:] = 0
        rows = self.cells[: groups * wider].reshape(groups, wider)
        rows[:, :HEADER] = old[:, :HEADER]
        rows[:, HEADER + before : HEADER + before + stride - HEADER] = old[:, HEADER:]
        self._range[_LOW], self._range[_HIGH] = low, high
