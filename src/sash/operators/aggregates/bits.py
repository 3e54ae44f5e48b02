"""BIT_AND, BIT_OR and BIT_XOR: a removal takes a value out of the counts of its bits."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from sash.operators.aggregates.arguments import ArgumentColumns, Values
from sash.operators.aggregates.base import Accumulator, Versions, Work, fixed_versions
from sash.operators.kernels.bits import STRIDE, count_bits
from sash.state.memory import Arrays, Memory


class Bits(Accumulator):
    """Integers."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, column: int, distinct: bool) -> None:
        super().__init__()
        self._values = Values(arguments, column, distinct)
        self._cells = Arrays(memory, {"cells": np.int64})

    def apply(self, work: Work) -> list[Versions]:
        column, skip = self._values.load(work)
        values = np.array(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)
        self._cells.reserve(STRIDE * work.groups)
        ands, ors, xors, counts = (np.empty(work.versions, np.int64) for _ in range(4))
        count_bits(work.events, values, skip, self._cells["cells"], ands, ors, xors, counts)
        results = {"bit_and": ands, "bit_or": ors, "bit_xor": xors}
        return [fixed_versions(results[call.function], counts == 0, call.dtype) for call in self._calls]
