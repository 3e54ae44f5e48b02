"""The hash buffer: rows by value, for inputs whose rows are retracted (negative tuples; STR, paper 5, 5.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.buffer import SlotBuffer
from sash.state.hashing import Hashes
from sash.state.interner import Interner
from sash.state.jit import kernel
from sash.state.memory import Arrays, Ints, Memory
from sash.state.slots import Slots


class HashBuffer(SlotBuffer):
    """The live rows of one explicit input, found by value: a `-` row gets the slot of an equal `+` row.

    Of several equal rows it is the youngest or, for operators that distinguish equal rows, the oldest, which ends first if
    rows end in order of arrival. `slots` may be those of another buffer with which this one shares its rows.
    """

    def __init__(self, memory: Memory, oldest_first: bool = False, slots: Slots | None = None) -> None:
        super().__init__(Slots(memory.scope("rows")) if slots is None else slots)
        self._oldest_first = oldest_first
        self._values = Interner(memory.scope("values"))
        self._heads = Arrays(memory, {"value.head": np.int64, "value.tail": np.int64})
        self._links = Arrays(memory, {"row.next": np.int64})

    def apply(self, sign: npt.NDArray[np.int8], low: Hashes, high: Hashes) -> Ints:
        """The slot of every change, in order: a new one for `+`, that of the retracted row for `-`.

        The caller releases the slots of the `-` rows once their contents have been used.
        """
        codes, fresh = self._values.intern(low, high)
        self._heads.reserve(self._values.capacity)
        self._heads["value.head"][codes[fresh]] = 0
        spare = self.slots.take(int((sign > 0).sum()))
        self._links.reserve(self.slots.high)
        heads, tails = self._heads["value.head"], self._heads["value.tail"]
        result = _apply(sign, codes, spare, heads, tails, self._links["row.next"], self._oldest_first)
        gone = np.unique(codes[sign < 0])
        self._values.forget(gone[self._heads["value.head"][gone] == 0])
        return result


@kernel
def _apply(
    sign: npt.NDArray[np.int8], codes: Ints, spare: Ints, heads: Ints, tails: Ints, links: Ints, oldest_first: bool
) -> Ints:
    result = np.empty(len(sign), np.int64)
    used = 0
    for index in range(len(sign)):
        code = codes[index]
        if sign[index] > 0:
            slot = spare[used]
            used += 1
            if oldest_first and heads[code] > 0:
                links[slot] = 0
                links[tails[code] - 1] = slot + 1
            else:
                links[slot] = heads[code]
                heads[code] = slot + 1
            tails[code] = slot + 1
        else:
            slot = heads[code] - 1
            if slot < 0:
                raise ValueError("a retracted row does not exist")
            heads[code] = links[slot]
        result[index] = slot
    return result
