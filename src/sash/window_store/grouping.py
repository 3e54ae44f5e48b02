"""Groups of equal keys: dense codes for rows, and where the groups of one table stand in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.state.hashing import Keys, hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints


class Groups:
    """The distinct keys among some rows, in order of first appearance; without key columns all rows are one group."""

    def __init__(self, keys: Sequence[pa.Array], rows: int) -> None:
        self._interner = Interner(HeapMemory())
        if keys:
            low, high = _hashed(keys, rows)
            self.codes, self.first = self._interner.intern(low, high)
            if len(self.first):
                dense = np.empty(self._interner.capacity, np.int64)
                dense[self.codes[self.first]] = np.arange(len(self.first))
                self._dense = dense
                self.codes = dense[self.codes]
        else:
            self.codes = np.zeros(rows, np.int64)
            self.first = np.zeros(min(rows, 1), np.int64)

    def __len__(self) -> int:
        return len(self.first)

    def find(self, keys: Sequence[pa.Array], rows: int) -> Ints:
        """The group of every key of another table, -1 where there is none."""
        if not len(self):
            return np.full(rows, -1, np.int64)
        if not keys:
            return np.zeros(rows, np.int64)
        found = self._interner.find(*_hashed(keys, rows))
        return np.where(found < 0, -1, self._dense[found])


def _hashed(keys: Sequence[pa.Array], rows: int) -> Keys:
    low, high = hash_rows(keys, rows)
    return (low if low.flags.writeable else low.copy()), high
