"""COUNT(*), COUNT(x), COUNT(DISTINCT x), and the aggregates of a column that has no values at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.aggregates.arguments import ArgumentColumns
from sash.operators.aggregates.base import NO_MASK, Accumulator, Versions, Work, array_versions, fixed_versions
from sash.operators.kernels.touches import count_events
from sash.state.memory import Arrays, Memory


class RowCount(Accumulator):
    """COUNT(*): returns the row counts that the operator keeps."""

    def apply(self, work: Work) -> list[Versions]:
        return [fixed_versions(work.counts, NO_MASK, call.dtype) for call in self._calls]


class Count(Accumulator):
    """The number of rows without NULL arguments, or of their distinct values."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, columns: Sequence[int], distinct: bool) -> None:
        super().__init__()
        self._repeats = arguments.repeats(columns) if distinct else None
        self._nulls = None if distinct else arguments.argument(columns, "null")
        self._counts = Arrays(memory, {"group.count": np.int64})

    def apply(self, work: Work) -> list[Versions]:
        skip = NO_MASK
        if self._repeats is not None:
            skip = self._repeats.load(work)
        elif self._nulls is not None:
            _, skip = self._nulls.load(work)
        self._counts.reserve(work.groups)
        out = np.empty(work.versions, np.int64)
        count_events(work.events, skip, self._counts["group.count"], out)
        return [fixed_versions(out, NO_MASK, call.dtype) for call in self._calls]


class Nothing(Accumulator):
    """Any aggregate of a column of type VOID: NULL."""

    def apply(self, work: Work) -> list[Versions]:
        return [array_versions(pa.nulls(work.versions, call.dtype)) for call in self._calls]
