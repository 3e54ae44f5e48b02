"""BIT_AND, BIT_OR and BIT_XOR: a removal takes a value out of the counts of its bits."""

from __future__ import annotations

import numpy as np

from sash.operators.aggregates.base import Versions, Work, fixed_versions
from sash.operators.aggregates.integers import IntegerCells
from sash.operators.kernels.bits import STRIDE, count_bits


class Bits(IntegerCells):
    """Integers."""

    def apply(self, work: Work) -> list[Versions]:
        values, skip, cells = self._load(work, STRIDE)
        ands, ors, xors, counts = (np.empty(work.versions, np.int64) for _ in range(4))
        count_bits(work.events, values, skip, cells, ands, ors, xors, counts)
        results = {"bit_and": ands, "bit_or": ors, "bit_xor": xors}
        return [fixed_versions(results[call.function], counts == 0, call.dtype) for call in self._calls]
