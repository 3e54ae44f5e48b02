"""VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP, from exact sums of x and of x^2."""

from __future__ import annotations

import numpy as np

from sash.operators.aggregates.arguments import ArgumentColumns, Values
from sash.operators.aggregates.base import Accumulator, Versions, Work, fixed_versions
from sash.operators.aggregates.limbs import LimbTable
from sash.operators.aggregates.sums import double_bits
from sash.operators.kernels.limbs import BIAS, span
from sash.operators.kernels.spreads import spread
from sash.state.memory import Memory


class Variance(Accumulator):
    """Any numbers, as doubles. The sample functions of a single value are NULL."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, column: int, distinct: bool) -> None:
        super().__init__()
        self._values = Values(arguments, column, distinct, "double")
        self._sums = LimbTable(memory.scope("sums"))
        self._squares = LimbTable(memory.scope("squares"))

    def apply(self, work: Work) -> list[Versions]:
        column, skip = self._values.load(work)
        bits = double_bits(column)
        smallest, largest = map(int, span(bits, skip))
        some = largest >= 0
        self._sums.cover(smallest >> 5, (largest >> 5) + 3 if some else 0, work.groups)
        self._squares.cover(smallest >> 4, (2 * largest >> 5) + 5 if some else 0, work.groups)
        mantissas, exponents = np.empty(work.versions, np.float64), np.empty(work.versions, np.int64)
        counts = np.empty(work.versions, np.int64)
        spread(
            work.events, bits, skip, self._sums.cells, self._sums.low, self._sums.width,
            self._squares.cells, self._squares.low, self._squares.width, mantissas, exponents, counts,
        )  # fmt: skip
        results = []
        for call in self._calls:
            sample = call.function.endswith("_samp")
            n = np.maximum(counts, 2 if sample else 1).astype(np.float64)
            share = mantissas / n / (n - 1 if sample else n)
            values = np.ldexp(share, np.clip(exponents - 2 * BIAS, -(2**20), 2**20).astype(np.int32))
            if call.function.startswith("stddev"):
                values = np.sqrt(values)
            results.append(fixed_versions(values.view(np.int64), counts < (2 if sample else 1), call.dtype))
        return results
