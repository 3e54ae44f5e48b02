"""The calendar buffers: rows partitioned by expiration time, for inputs that expire out of order (WK; paper 5, 5.2).

The partitions form a wheel: a row is in partition (exp / width) mod partitions. Draining visits only the partitions that
the clock has passed, so its cost depends on expired rows, not on stored ones; rows of a later turn of the wheel stay.

In the strict calendar rows may be retracted before they expire (STR; 5.3.2). A `-` row repeats the expiration time of its
`+` row, so that only one partition is searched. The cost of a search is the length of a partition, so it is for inputs
with few retractions.
"""

from __future__ import annotations

import numpy as np

from sash.state.buffer import Buffer
from sash.state.changes import Signs
from sash.state.hashing import Hashes
from sash.state.jit import grown, kernel
from sash.state.memory import Arrays, Ints, Memory
from sash.time import FOREVER, SECOND

_DRAINED, _STARTED = 0, 1


class CalendarBuffer(Buffer):
    """A wheel of `partitions` linked lists, each `width` microseconds wide; an attached wheel keeps its own shape."""

    def __init__(self, memory: Memory, partitions: int = 1024, width: int = SECOND) -> None:
        super().__init__(memory)
        self._shape = memory.array("width", np.int64, 1)
        if not self._shape[0]:
            self._shape[0] = max(1, width)
        self._width = int(self._shape[0])
        self._marks = memory.array("marks", np.int64, 2)
        self._heads = memory.array("heads", np.int64, partitions)
        self._rows = Arrays(memory, {"row.exp": np.int64, "row.next": np.int64})

    def add(self, exp: Ints) -> Ints:
        slots = self.slots.take(len(exp))
        self.schedule(slots, exp)
        return slots

    def schedule(self, slots: Ints, exp: Ints) -> None:
        """Set the expiration times of slots in use; they must not be before the last drain."""
        if not len(slots):
            return
        self._reserve(int(slots.max()) + 1, exp)
        _schedule(slots, exp, self._heads, self._width, self._rows["row.exp"], self._rows["row.next"])

    def _reserve(self, size: int, exp: Ints) -> None:
        """Reserve space for `size` slots, and start draining at the first of these times."""
        self._rows.reserve(size)
        first = int(exp.min()) // self._width
        if not self._marks[_STARTED] or first < self._marks[_DRAINED]:
            self._marks[_STARTED] = 1
            self._marks[_DRAINED] = first

    def _drain(self, clock: int) -> tuple[Ints, Ints]:
        if not self._marks[_STARTED]:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        first = int(self._marks[_DRAINED])
        last = min(max(clock // self._width, first), first + len(self._heads) - 1)
        slots = _drain(clock, first, last, self._heads, self._rows["row.exp"], self._rows["row.next"])
        self._marks[_DRAINED] = max(clock // self._width, first)
        exps = self._rows["row.exp"][slots]
        order = np.argsort(exps, kind="stable")
        return slots[order], exps[order]


@kernel
def _schedule(slots: Ints, exp: Ints, heads: Ints, width: int, row_exp: Ints, row_next: Ints) -> None:
    for index in range(len(slots)):
        slot = slots[index]
        row_exp[slot] = exp[index]
        if exp[index] == FOREVER:
            continue
        position = (exp[index] // width) % len(heads)
        row_next[slot] = heads[position]
        heads[position] = slot + 1


@kernel
def _drain(clock: int, first: int, last: int, heads: Ints, row_exp: Ints, row_next: Ints) -> Ints:
    result = np.empty(1024, np.int64)
    count = 0
    for turn in range(first, last + 1):
        position = turn % len(heads)
        slot = heads[position] - 1
        keep = 0
        while slot >= 0:
            following = row_next[slot] - 1
            if row_exp[slot] < clock:
                if count == len(result):
                    result = grown(result, 2 * count)
                result[count] = slot
                count += 1
            else:
                row_next[slot] = keep
                keep = slot + 1
            slot = following
        heads[position] = keep
    return result[:count].copy()


class StrictCalendar(CalendarBuffer):
    """A calendar whose rows can be found by (expiration time, value)."""

    def __init__(self, memory: Memory, partitions: int, width: int) -> None:
        super().__init__(memory, partitions, width)
        self._values = Arrays(memory, {"row.value": np.uint64})
        self.searched = 0
        """The number of rows examined to find retracted ones."""

    def apply(self, sign: Signs, exp: Ints, values: Hashes) -> Ints:
        """The slot of every change, in order: a new one for `+`; for `-` that of a row with the same expiration time and value.

        The caller releases the slots of the `-` rows once their contents have been used.
        """
        if not len(sign):
            return np.empty(0, np.int64)
        spare = self.slots.take(int((sign > 0).sum()))
        self._reserve(self.slots.high, exp)
        self._values.reserve(self.slots.high)
        slots, searched = _apply(
            sign, exp, values, spare, self._heads, self._width,
            self._rows["row.exp"], self._rows["row.next"], self._values["row.value"],
        )  # fmt: skip
        self.searched += searched
        return slots


@kernel
def _apply(
    sign: Signs, exp: Ints, values: Hashes, spare: Ints, heads: Ints, width: int,
    row_exp: Ints, row_next: Ints, row_value: Hashes,
) -> tuple[Ints, int]:  # fmt: skip
    result = np.empty(len(sign), np.int64)
    used = searched = 0
    for index in range(len(sign)):
        position = (exp[index] // width) % len(heads)
        if sign[index] > 0:
            slot = spare[used]
            used += 1
            row_exp[slot], row_value[slot] = exp[index], values[index]
            row_next[slot] = heads[position]
            heads[position] = slot + 1
        else:
            before, slot = -1, heads[position] - 1
            while slot >= 0 and (row_exp[slot] != exp[index] or row_value[slot] != values[index]):
                before, slot = slot, row_next[slot] - 1
                searched += 1
            if slot < 0:
                raise ValueError("a retracted row does not exist")
            searched += 1
            if before < 0:
                heads[position] = row_next[slot]
            else:
                row_next[before] = row_next[slot]
        result[index] = slot
    return result, searched
