"""Join with a relation that never changes: insertions and retractions are processed alike (paper 5, 4.1).

Meaning: (row, ts, exp, sign) gives (row + match, ts, exp, sign) for every match; LEFT pads a row without a match with
NULLs, SEMI keeps rows with a match and ANTI rows without one. NULL keys never match.

The keys of the relation are numbered from 0. A single key column of integers, dates or times in a narrow range is an
array index; any other key is looked up by hash.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.matches import joined_rows
from sash.plan.expressions import Expression
from sash.plan.nodes import JoinKind
from sash.state.changes import ChangeBatch
from sash.state.columns import gather, stored_values
from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.jit import kernel
from sash.state.memory import Array, HeapMemory, Ints, Memory


class Lookup(Operator):
    """Has an index over the relation, built in the constructor; there is no state that changes."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge],
        table: pa.Table,
        kind: JoinKind,
        keys: tuple[tuple[int, int], ...],
        condition: Expression | None = None,
    ) -> None:
        self._kind = kind
        self._keys = keys
        self._condition = condition
        self._columns = [table.column(index).combine_chunks() for index in range(table.num_columns)]
        rows = np.arange(table.num_rows)
        key_columns = [self._columns[right] for _, right in keys]
        nulls = any_null(key_columns)
        if nulls is not None:
            rows = rows[~nulls]
            key_columns = list(gather(key_columns, rows))
        self._index = index_of(key_columns, len(rows))
        self._sorted = rows[np.argsort(self._index.codes, kind="stable")]
        counts = np.bincount(self._index.codes)
        self._starts = np.concatenate(([0], np.cumsum(counts)))
        self._unique = len(counts) == len(rows)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        left, right = self._matches(batch)
        partners = gather(self._columns, right)
        return joined_rows(batch, self._kind, left, partners, self._condition)[0]

    def _matches(self, batch: ChangeBatch) -> tuple[Ints, Ints]:
        """Pairs of (row of the batch, row of the relation) with equal keys, in the batch's order."""
        found, codes = self._index.find([batch.columns[left] for left, _ in self._keys], len(batch))
        if self._unique:
            return found, self._sorted[codes]
        starts = self._starts[codes]
        counts = self._starts[codes + 1] - starts
        left = np.repeat(found, counts)
        within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        return left, self._sorted[np.repeat(starts, counts) + within]


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

    def __init__(self, keys: Array, least: int, positions: int) -> None:
        self._least = least
        known = np.zeros(positions, np.bool_)
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
            positions = int(keys.max()) - least + 1
            if positions <= CLOSE * rows:
                return CloseKeys(keys.astype(np.int64), least, positions)
    return HashedKeys(columns, rows)


@kernel
def _find_close(values: Array, least: int, codes: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
    found = np.empty(len(values), np.int64)
    known = np.empty(len(values), np.int64)
    count = 0
    for row in range(len(values)):
        position = np.int64(values[row]) - least
        if 0 <= position < len(codes) and codes[position] >= 0:
            found[count] = row
            known[count] = codes[position]
            count += 1
    return found[:count], known[:count]
