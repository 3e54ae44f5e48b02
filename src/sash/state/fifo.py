"""The FIFO buffer: for inputs whose rows expire in the order in which they came (update pattern WKS; paper 5, 5.2)."""

from __future__ import annotations

import numpy as np

from sash.state.buffer import Buffer
from sash.state.memory import Arrays, Ints, Memory

_HEAD, _TAIL = 0, 1


class FifoBuffer(Buffer):
    """A ring of (slot, exp): new rows at the tail, expired ones from the head, which is always within the array."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._ends = memory.array("ends", np.int64, 2)
        self._queue = Arrays(memory, {"queue.slot": np.int64, "queue.exp": np.int64})

    def add(self, exp: Ints) -> Ints:
        slots = self.slots.take(len(exp))
        self._make_room(len(exp))
        tail = int(self._ends[_TAIL]) % self._queue.capacity
        before = min(len(exp), self._queue.capacity - tail)
        for name, values in (("queue.slot", slots), ("queue.exp", exp)):
            self._queue[name][tail : tail + before] = values[:before]
            self._queue[name][: len(exp) - before] = values[before:]
        self._ends[_TAIL] += len(exp)
        return slots

    def _drain(self, clock: int) -> tuple[Ints, Ints]:
        slots, exps = [], []
        while True:
            head, tail, size = int(self._ends[_HEAD]), int(self._ends[_TAIL]), self._queue.capacity
            waiting = self._queue["queue.exp"][head : min(tail, size)]
            count = int(np.searchsorted(waiting, clock, side="left"))
            slots.append(self._queue["queue.slot"][head : head + count].copy())
            exps.append(waiting[:count].copy())
            if head + count < size:
                self._ends[_HEAD] = head + count
                break
            self._ends[_HEAD], self._ends[_TAIL] = 0, tail - size
        return (slots[0], exps[0]) if len(slots) == 1 else (np.concatenate(slots), np.concatenate(exps))

    def _make_room(self, count: int) -> None:
        """Grow if need be; what had wrapped around comes to stand behind the rest."""
        head, tail, size = int(self._ends[_HEAD]), int(self._ends[_TAIL]), self._queue.capacity
        if tail - head + count <= size:
            return
        self._queue.reserve(tail - head + count)
        wrapped = max(0, tail - size)
        for name in ("queue.slot", "queue.exp"):
            ring = self._queue[name]
            ring[: tail - head] = np.concatenate((ring[head : tail - wrapped], ring[:wrapped]))
        self._ends[_HEAD], self._ends[_TAIL] = 0, tail - head
