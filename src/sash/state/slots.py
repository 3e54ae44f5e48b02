"""Row numbers handed out and taken back: state arrays are indexed by slot, and slots are used again."""

from __future__ import annotations

import numpy as np

from sash.state.memory import Ints, Memory

_HIGH, _FREE = 0, 1


class Slots:
    """Slots 0, 1, 2 ... with a stack of those that were given back."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._marks = memory.array("slots", np.int64, 2)
        self._stack = memory.array("slots.free", np.int64, 1024)

    @property
    def high(self) -> int:
        """Every slot handed out so far is below this."""
        return int(self._marks[_HIGH])

    @property
    def live(self) -> int:
        """How many are in use."""
        return int(self._marks[_HIGH] - self._marks[_FREE])

    def take(self, count: int) -> Ints:
        """`count` slots, those given back first."""
        free = int(self._marks[_FREE])
        again = min(free, count)
        result = np.empty(count, np.int64)
        result[:again] = self._stack[free - again : free][::-1]
        high = self.high
        result[again:] = np.arange(high, high + count - again)
        self._marks[_FREE] = free - again
        self._marks[_HIGH] = high + count - again
        return result

    def give(self, slots: Ints) -> None:
        """Take back slots that nothing refers to any more."""
        free = int(self._marks[_FREE])
        if len(self._stack) < free + len(slots):
            self._stack = self._memory.grow("slots.free", np.int64, 2 * (free + len(slots)))
        self._stack[free : free + len(slots)] = slots
        self._marks[_FREE] = free + len(slots)
