"""SUM, AVG, VAR_* and STDDEV_* from exact sums of x and of x^2: the value depends only on the rows of the group, not on the history of changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError
from sash.operators.aggregates.arguments import ArgumentColumns, Values
from sash.operators.aggregates.base import Accumulator, Versions, Work, array_versions, fixed_versions, validity_of
from sash.operators.aggregates.integers import IntegerCells
from sash.operators.kernels.limbs import BIAS, HEADER, span
from sash.operators.kernels.spreads import spread
from sash.operators.kernels.sums import DECIMAL_STRIDE, INTEGER_STRIDE, sum_decimals, sum_doubles, sum_integers
from sash.plan.types import type_name
from sash.state.hashing import decimal_words
from sash.state.memory import Arrays, Ints, Memory

_LOW, _HIGH = 0, 1


class LimbTable:
    """Exact numbers by group, whose range of limbs widens when a value needs it.

    Rows of HEADER counters (values, infinities and NaNs among them) and `width` limbs, the lowest being `low`.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._range = memory.array("range", np.int64, 2)
        self.cells: Ints = memory.array("cells", np.int64, 1024)

    @property
    def low(self) -> int:
        return int(self._range[_LOW])

    @property
    def width(self) -> int:
        return int(self._range[_HIGH] - self._range[_LOW])

    def cover(self, low: int, high: int, groups: int) -> None:
        """Provide limbs `low` to `high` (exclusive; none if equal) and space for this many groups."""
        if low < high and not (self.width and self.low <= low and high <= self._range[_HIGH]):
            self._widen(low, high)
        needed = groups * (HEADER + self.width)
        if needed > len(self.cells):
            self.cells = self._memory.grow("cells", np.int64, max(needed, 2 * len(self.cells)))

    def _widen(self, low: int, high: int) -> None:
        """Copy all rows to a wider layout; this happens at most once per limb that a double can have."""
        stride = HEADER + self.width
        if self.width:
            low, high = min(low, self.low), max(high, int(self._range[_HIGH]))
        groups = len(self.cells) // stride
        old = self.cells[: groups * stride].reshape(groups, stride).copy()
        before = self.low - low if self.width else 0
        wider = HEADER + high - low
        self.cells = self._memory.grow("cells", np.int64, groups * wider)
        self.cells[:] = 0
        rows = self.cells[: groups * wider].reshape(groups, wider)
        rows[:, :HEADER] = old[:, :HEADER]
        rows[:, HEADER + before : HEADER + before + stride - HEADER] = old[:, HEADER:]
        self._range[_LOW], self._range[_HIGH] = low, high


class IntegerSum(IntegerCells):
    """Integers. SUM raises an error if it exceeds 64 bits, TRY_SUM is NULL, and AVG cannot."""

    def apply(self, work: Work) -> list[Versions]:
        values, skip, cells = self._load(work, INTEGER_STRIDE)
        sums, counts = np.empty(work.versions, np.int64), np.empty(work.versions, np.int64)
        averages, fits = np.empty(work.versions, np.float64), np.ones(work.versions, np.bool_)
        overflow = sum_integers(work.events, values, skip, cells, sums, averages, counts, fits)
        if overflow and any(call.function == "sum" for call in self._calls):
            raise EvaluationError(
                "SUM exceeds the range of BIGINT: sum a DECIMAL or a DOUBLE, as in SUM(CAST(x AS DOUBLE))"
            )
        results = []
        for call in self._calls:
            values = averages.view(np.int64) if call.function in ("avg", "try_avg") else sums
            nulls = (counts == 0) | ~fits if call.function == "try_sum" else counts == 0
            results.append(fixed_versions(values, nulls, call.dtype))
        return results


class DoubleSum(Accumulator):
    """Floats and doubles. Infinities and NaNs are counted, so that they can be removed again."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, column: int, distinct: bool) -> None:
        super().__init__()
        self._values = Values(arguments, column, distinct)
        self._table = LimbTable(memory)

    def apply(self, work: Work) -> list[Versions]:
        column, skip = self._values.load(work)
        bits = double_bits(column)
        smallest, largest = map(int, span(bits, skip))
        high = (largest >> 5) + 3 if largest >= 0 else 0
        self._table.cover(smallest >> 5, high, work.groups)
        sums, counts = np.empty(work.versions, np.float64), np.empty(work.versions, np.int64)
        table = self._table
        sum_doubles(work.events, bits, skip, table.cells, table.low, table.width, sums, counts)
        nulls = counts == 0
        results = []
        for call in self._calls:
            values = sums / np.maximum(counts, 1) if call.function in ("avg", "try_avg") else sums
            results.append(fixed_versions(values.view(np.int64), nulls, call.dtype))
        return results


class DecimalSum(Accumulator):
    """Decimals: SUM, or AVG rounded half up, of one result type; TRY_SUM and TRY_AVG are NULL where it is too small."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, column: int, distinct: bool) -> None:
        super().__init__()
        self._scale = arguments.edge.dtypes[column].scale
        self._values = Values(arguments, column, distinct)
        self._cells = Arrays(memory, {"cells": np.int64})

    def apply(self, work: Work) -> list[Versions]:
        call = self._calls[0]
        column, skip = self._values.load(work)
        words = decimal_words(column)
        self._cells.reserve(DECIMAL_STRIDE * work.groups)
        out, counts = np.empty(2 * work.versions, np.uint64), np.empty(work.versions, np.int64)
        bound = 10**call.dtype.precision
        limit = np.array([bound & (2**64 - 1), bound >> 64], np.uint64)
        average = call.function in ("avg", "try_avg")
        factor = 10 ** (call.dtype.scale - self._scale) if average else 1
        fits = np.ones(work.versions, np.bool_)
        overflow = sum_decimals(
            work.events, np.array(words[:, 0]), np.array(words[:, 1]), skip, self._cells["cells"], factor, limit,
            average, out, counts, fits,
        )  # fmt: skip
        if overflow and not call.function.startswith("try_"):
            raise EvaluationError(
                f"{call.function.upper()} does not fit in {type_name(call.dtype)}: "
                "cast the argument to a DECIMAL of fewer digits, or to DOUBLE"
            )
        validity, missing = validity_of((counts == 0) | ~fits)
        buffers = [validity, pa.py_buffer(out)]
        result = array_versions(pa.Array.from_buffers(call.dtype, work.versions, buffers, missing))
        return [result] * len(self._calls)


def double_bits(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Doubles as bits, 0.0 for NULL and for -0.0."""
    filled = pc.fill_null(column, 0) if column.null_count else column
    values = np.asarray(filled.to_numpy(zero_copy_only=False), np.float64) + 0.0
    return values.view(np.uint64)


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
            with np.errstate(over="ignore"):
                values = np.ldexp(share, np.clip(exponents - 2 * BIAS, -(2**20), 2**20).astype(np.int32))
            if call.function.startswith("stddev"):
                values = np.sqrt(values)
            results.append(fixed_versions(values.view(np.int64), counts < (2 if sample else 1), call.dtype))
        return results
