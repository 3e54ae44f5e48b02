"""The change batch: the data that flows along every edge of a plan.

A change is (row, ts, exp, sign). A `+` row is valid from `ts` until `exp`, where it expires silently; a row whose `exp` is
FOREVER is valid until a `-` row with the same values retracts it. There are three kinds of edges: *stamped* (only `+`
rows, each with its expiration time), *explicit* (`exp` is FOREVER, and every row ends by a retraction) and *strict* (rows
expire, or are retracted earlier by a `-` row with the same values and the same `exp`).
A batch is sorted by `ts`, and at one instant the `-` rows come before the `+` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.state.columns import gather
from sash.state.memory import Ints
from sash.time import FOREVER

Signs = npt.NDArray[np.int8]


@dataclass(frozen=True)
class ChangeBatch:
    """Changes as columns of equal length; `slots` are the rows' slots in the store of an operator that shares its rows."""

    ts: Ints
    exp: Ints
    sign: Signs
    columns: tuple[pa.Array, ...]
    slots: Ints | None = None

    def __len__(self) -> int:
        return len(self.ts)

    @staticmethod
    def empty(dtypes: Sequence[pa.DataType]) -> ChangeBatch:
        """An empty batch of the given column types."""
        none = np.empty(0, np.int64)
        return ChangeBatch(none, none, np.empty(0, np.int8), tuple(pa.array([], dtype) for dtype in dtypes))

    @staticmethod
    def explicit(ts: Ints, sign: Signs, columns: Sequence[pa.Array]) -> ChangeBatch:
        """Changes of an explicit edge."""
        return ChangeBatch(ts, np.full(len(ts), FOREVER), sign, tuple(columns))

    @staticmethod
    def stamped(ts: Ints, exp: Ints, columns: Sequence[pa.Array]) -> ChangeBatch:
        """Rows of a stamped edge."""
        return ChangeBatch(ts, exp, np.ones(len(ts), np.int8), tuple(columns))

    def take(self, positions: Ints) -> ChangeBatch:
        """The changes at these positions, in this order."""
        return ChangeBatch(
            self.ts[positions],
            self.exp[positions],
            self.sign[positions],
            gather(self.columns, positions),
            None if self.slots is None else self.slots[positions],
        )

    def slice(self, start: int, stop: int) -> ChangeBatch:
        """The changes from `start` up to `stop`, without copying."""
        if start == 0 and stop == len(self):
            return self
        return ChangeBatch(
            self.ts[start:stop],
            self.exp[start:stop],
            self.sign[start:stop],
            tuple(column.slice(start, stop - start) for column in self.columns),
            None if self.slots is None else self.slots[start:stop],
        )

    def with_columns(self, columns: Sequence[pa.Array]) -> ChangeBatch:
        """The same changes with other columns."""
        return ChangeBatch(self.ts, self.exp, self.sign, tuple(columns))

    def sorted(self) -> ChangeBatch:
        """The batch sorted by time, `-` before `+`; the sort is stable."""
        if len(self) < 2:
            return self
        before, after = self.ts[:-1], self.ts[1:]
        if (before < after).all():
            return self
        if not ((before > after) | ((before == after) & (self.sign[:-1] > self.sign[1:]))).any():
            return self
        order = np.argsort(self.ts, kind="stable") if (self.sign > 0).all() else np.lexsort((self.sign, self.ts))
        return self.take(order)


def concat(batches: Sequence[ChangeBatch]) -> ChangeBatch:
    """The batches one after the other (at least one; not sorted)."""
    filled = [batch for batch in batches if len(batch)] or [batches[0]]
    if len(filled) == 1:
        return filled[0]
    return ChangeBatch(
        np.concatenate([batch.ts for batch in filled]),
        np.concatenate([batch.exp for batch in filled]),
        np.concatenate([batch.sign for batch in filled]),
        tuple(pa.concat_arrays(parts) for parts in zip(*(batch.columns for batch in filled), strict=True)),
    )
