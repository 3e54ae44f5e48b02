"""The FIFO buffer: for inputs whose rows expire in the order in which they came (update pattern WKS; paper 5, 5.2)."""

from __future__ import annotations

import numpy as np

from sash.state.buffer import Buffer
from sash.state.memory import Arrays, Ints, Memory

_HEAD, _TAIL = 0, 1


class FifoBuffer(Buffer):
    """A queue of (slot, exp): new rows at the tail, expired ones from the head."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._ends = memory.array("ends", np.int64, 2)
        self._queue = Arrays(memory, {"queue.slot": np.int64, "queue.exp": np.int64})

    def add(self, exp: Ints) -> Ints:
        slots = self.slots.take(len(exp))
        self._make_room(len(exp))
        tail = int(self._ends[_TAIL])
        self._queue["queue.slot"][tail : tail + len(exp)] = slots
        self._queue["queue.exp"][tail : tail + len(exp)] = exp
        self._ends[_TAIL] = tail + len(exp)
        return slots

    def _drain(self, clock: int) -> tuple[Ints, Ints]:
        head, tail = int(self._ends[_HEAD]), int(self._ends[_TAIL])
        exps = self._queue["queue.exp"][head:tail]
        count = int(np.searchsorted(exps, clock, side="left"))
        self._ends[_HEAD] = head + count
        return self._queue["queue.slot"][head : head + count].copy(), exps[:count].copy()

    def _make_room(self, count: int) -> None:
        """Move the queue to the front once half of the array lies before it: constant work per row, amortised."""
        head, tail = int(self._ends[_HEAD]), int(self._ends[_TAIL])
        if tail + count <= self._queue.capacity:
            return
        if 2 * head >= tail:
            for name in ("queue.slot", "queue.exp"):
                self._queue[name][: tail - head] = self._queue[name][head:tail].copy()
            self._ends[_HEAD], self._ends[_TAIL] = 0, tail - head
        self._queue.reserve(int(self._ends[_TAIL]) + count)
