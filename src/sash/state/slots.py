"""Allocation of slots: state arrays are indexed by slot, and slots are reused."""

from __future__ import annotations

import numpy as np

from sash.state.jit import inlined, kernel
from sash.state.memory import Ints, Memory

_HIGH, _FREE = 0, 1


class Slots:
    """Slots 0, 1, 2 ... with a stack of free ones; `marks` are the number of slots and of free slots."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.marks = memory.array("slots", np.int64, 2)
        self.stack = memory.array("slots.free", np.int64, 1024)

    @property
    def high(self) -> int:
        """Every slot allocated so far is below this."""
        return int(self.marks[_HIGH])

    @property
    def live(self) -> int:
        """The number of slots in use."""
        return int(self.marks[_HIGH] - self.marks[_FREE])

    def take(self, count: int) -> Ints:
        """Allocate `count` slots, free ones first."""
        return _take(count, self.marks, self.stack)

    def give(self, slots: Ints) -> None:
        """Free slots that are no longer referenced."""
        free = int(self.marks[_FREE])
        if len(self.stack) < free + len(slots):
            self.stack = self._memory.grow("slots.free", np.int64, 2 * (free + len(slots)))
        self.stack[free : free + len(slots)] = slots
        self.marks[_FREE] = free + len(slots)


@inlined
def next_slot(marks: Ints, stack: Ints) -> np.int64:
    """In kernels: allocate one slot, a free one if there is any."""
    if marks[_FREE] > 0:
        marks[_FREE] -= 1
        return np.int64(stack[marks[_FREE]])
    marks[_HIGH] += 1
    return np.int64(marks[_HIGH] - 1)


@kernel
def _take(count: int, marks: Ints, stack: Ints) -> Ints:
    result = np.empty(count, np.int64)
    for index in range(count):
        result[index] = next_slot(marks, stack)
    return result
