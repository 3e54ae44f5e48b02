"""Aggregates of integers that keep some words per group."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from sash.operators.aggregates.arguments import ArgumentColumns, Values
from sash.operators.aggregates.base import Accumulator, Work
from sash.operators.kernels.touches import Mask
from sash.state.memory import Arrays, Ints, Memory


class IntegerCells(Accumulator):
    """The argument, an integer, and the words of all groups; subclasses add and remove values."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, column: int, distinct: bool) -> None:
        super().__init__()
        self._values = Values(arguments, column, distinct)
        self._cells = Arrays(memory, {"cells": np.int64})

    def _load(self, work: Work, stride: int) -> tuple[Ints, Mask, Ints]:
        """The values, those to skip, and the words, `stride` for each group."""
        column, skip = self._values.load(work)
        values = np.array(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)
        self._cells.reserve(stride * work.groups)
        return values, skip, self._cells["cells"]
