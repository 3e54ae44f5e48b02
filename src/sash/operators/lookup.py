"""Join with a relation that never changes: insertions and retractions are processed alike (paper 5, 4.1).

Meaning: (row, ts, exp, sign) gives (row + match, ts, exp, sign) for every match; LEFT pads a row without a match with
NULLs, SEMI keeps rows with a match and ANTI rows without one. NULL keys never match.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.lookup_index import index_of
from sash.operators.matches import joined_rows
from sash.plan.expressions import Expression
from sash.plan.nodes import JoinKind
from sash.state.changes import ChangeBatch
from sash.state.columns import gather
from sash.state.hashing import any_null
from sash.state.memory import Ints, Memory


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
