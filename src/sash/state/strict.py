"""The calendar buffer of rows that may be retracted before they expire (STR; paper 5, 5.3.2).

A row is in the partition of its expiration time, as in any calendar. A `-` row repeats the expiration time of its `+`
row, so that only one partition is searched. The cost of a search is the length of a partition, so this buffer is for
inputs with few retractions.
"""

from __future__ import annotations

import numpy as np

from sash.state.calendar import CalendarBuffer
from sash.state.changes import Signs
from sash.state.hashing import Hashes
from sash.state.jit import kernel
from sash.state.memory import Arrays, Ints, Memory


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
        place = (exp[index] // width) % len(heads)
        if sign[index] > 0:
            slot = spare[used]
            used += 1
            row_exp[slot], row_value[slot] = exp[index], values[index]
            row_next[slot] = heads[place]
            heads[place] = slot + 1
        else:
            before, slot = -1, heads[place] - 1
            while slot >= 0 and (row_exp[slot] != exp[index] or row_value[slot] != values[index]):
                before, slot = slot, row_next[slot] - 1
                searched += 1
            if slot < 0:
                raise ValueError("a retracted row does not exist")
            searched += 1
            if before < 0:
                heads[place] = row_next[slot]
            else:
                row_next[before] = row_next[slot]
        result[index] = slot
    return result, searched
