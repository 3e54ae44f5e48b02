"""Indexes over the keys of a relation that never changes: they find which rows of a batch have a match, and which key.

Keys are numbered from 0. A single key column of integers, dates or times in a narrow range is an array index; any other
key is looked up by hash.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.state.columns import stored_values
from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.jit import kernel
from sash.state.memory import Array, HeapMemory, Ints

CLOSE = 8
"""The largest array size per key: up to here the array is no larger than a hash table."""


class HashedKeys:
    """Keys of any types, by hash."""

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        self._interner = Interner(HeapMemory())
        self.codes, _ = self._interner.intern(*hash_rows(columns, rows))
        """The code of each row's key."""

    def find(self, columns: Sequence[pa.Array], rows: int) -> tuple[Ints, Ints]:
        """The rows whose key is in the index, in order, and the codes of their keys. NULL keys never match."""
        codes = self._interner.find(*hash_rows(columns, rows))
        nulls = any_null(columns)
        if nulls is not None:
            codes[nulls] = -1
        found = np.flatnonzero(codes >= 0)
        return found, codes[found]


class CloseKeys:
    """Keys of one column in a narrow range, by their distance from the smallest."""

    def __init__(self, keys: Array, least: int, places: int) -> None:
        self._least = least
        known = np.zeros(places, np.bool_)
        known[keys - least] = True
        self._codes = np.where(known, np.cumsum(known) - 1, -1).astype(np.int32)
        self.codes: Ints = self._codes[keys - least].astype(np.int64)
        """The code of each row's key."""

    def find(self, columns: Sequence[pa.Array], rows: int) -> tuple[Ints, Ints]:
        """The rows whose key is in the index, in order, and the codes of their keys. NULL keys never match."""
        (column,) = columns
        values = stored_values(column)
        assert values is not None
        found, codes = _find_close(values, self._least, self._codes)
        nulls = any_null(columns)
        if nulls is None:
            return found, codes
        known = ~nulls[found]
        return found[known], codes[known]


def index_of(columns: Sequence[pa.Array], rows: int) -> HashedKeys | CloseKeys:
    """The index over a relation's keys, none of which is NULL."""
    if len(columns) == 1 and rows and not pa.types.is_floating(columns[0].type):
        keys = stored_values(columns[0])
        if keys is not None:
            least = int(keys.min())
            places = int(keys.max()) - least + 1
            if places <= CLOSE * rows:
                return CloseKeys(keys.astype(np.int64), least, places)
    return HashedKeys(columns, rows)


@kernel
def _find_close(values: Array, least: int, codes: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
    found = np.empty(len(values), np.int64)
    known = np.empty(len(values), np.int64)
    count = 0
    for row in range(len(values)):
        place = np.int64(values[row]) - least
        if 0 <= place < len(codes) and codes[place] >= 0:
            found[count] = row
            known[count] = codes[place]
            count += 1
    return found[:count], known[:count]
