"""The FIFO buffer: for inputs whose rows expire in order of arrival (update pattern WKS; paper 5, 5.2)."""

from __future__ import annotations

import numpy as np

from sash.state.buffer import Buffer
from sash.state.jit import kernel
from sash.state.memory import Arrays, Ints, Memory

_HEAD, _TAIL = 0, 1


class FifoBuffer(Buffer):
    """A ring of (slot, exp): rows are added at the tail and expire at the head, which is always within the array."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory)
        self._ends = memory.array("ends", np.int64, 2)
        self._queue = Arrays(memory, {"queue.slot": np.int64, "queue.exp": np.int64})

    def add(self, exp: Ints) -> Ints:
        slots = self.slots.take(len(exp))
        self._make_room(len(exp))
        _append(slots, exp, self._ends, self._queue["queue.slot"], self._queue["queue.exp"])
        return slots

    def _drain(self, clock: int) -> tuple[Ints, Ints]:
        return _take_expired(clock, self._ends, self._queue["queue.slot"], self._queue["queue.exp"])

    def _make_room(self, count: int) -> None:
        """Grow if necessary; rows that had wrapped around are moved behind the others."""
        head, tail, size = int(self._ends[_HEAD]), int(self._ends[_TAIL]), self._queue.capacity
        if tail - head + count <= size:
            return
        self._queue.reserve(tail - head + count)
        wrapped = max(0, tail - size)
        for name in ("queue.slot", "queue.exp"):
            ring = self._queue[name]
            ring[: tail - head] = np.concatenate((ring[head : tail - wrapped], ring[:wrapped]))
        self._ends[_HEAD], self._ends[_TAIL] = 0, tail - head


@kernel
def _append(slots: Ints, exp: Ints, ends: Ints, queue_slot: Ints, queue_exp: Ints) -> None:
    position = ends[_TAIL] % len(queue_slot)
    for index in range(len(slots)):
        queue_slot[position] = slots[index]
        queue_exp[position] = exp[index]
        position += 1
        if position == len(queue_slot):
            position = 0
    ends[_TAIL] += len(slots)


@kernel
def _take_expired(clock: int, ends: Ints, queue_slot: Ints, queue_exp: Ints) -> tuple[Ints, Ints]:
    """Remove and return the expired rows at the head of the ring."""
    waiting, position, count = ends[_TAIL] - ends[_HEAD], ends[_HEAD], 0
    while count < waiting and queue_exp[position] < clock:
        count += 1
        position += 1
        if position == len(queue_exp):
            position = 0
    slots = np.empty(count, np.int64)
    exps = np.empty(count, np.int64)
    position = ends[_HEAD]
    for index in range(count):
        slots[index] = queue_slot[position]
        exps[index] = queue_exp[position]
        position += 1
        if position == len(queue_exp):
            position = 0
    if ends[_HEAD] + count >= len(queue_exp):
        ends[_TAIL] -= len(queue_exp)
    ends[_HEAD] = position
    return slots, exps
