"""Lazy expiration (paper 4, 3.2; paper 5, 2.1): expired rows stay in an operator's state until the next removal."""

from __future__ import annotations

import numpy as np

from sash.state.memory import Memory


class Purging:
    """When an operator removes expired rows: at once, or once per `interval` microseconds."""

    def __init__(self, memory: Memory, interval: int | None) -> None:
        self._interval = interval
        self._last = None if interval is None else memory.array("purged", np.int64, 1)

    @property
    def lazy(self) -> bool:
        """Whether expired rows may be in the state, so that their times must be compared."""
        return self._last is not None

    def due(self, clock: int) -> int:
        """The time up to which expired rows are removed now: the clock, or that of the last removal."""
        if self._last is None or self._interval is None:
            return clock
        if clock - self._last[0] >= self._interval:
            self._last[0] = clock
        return int(self._last[0])
