"""Summaries: small tables, one per sub-window, that merge into the result of a query (paper 2, 2.1); rows and groups.

Every summary is an Arrow table whose first columns are the keys k0, k1 ... Queries with equal filters, keys and argument
share their summaries: `identity` is the name of the file stored beside the sub-window.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.state.hashing import Keys, hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints
from sash.window_store.store.layout import ENDS, SIGN, TIME
from sash.window_store.store.tables import columns_of, times

Signs = npt.NDArray[np.int8]


@dataclass
class RowBatch:
    """Rows by column. `ts` is None if the rows have no times, `sign` is None if none of them is a retraction."""

    columns: Sequence[pa.Array]
    count: int
    ts: Ints | None = None
    sign: Signs | None = None
    _values: dict[Expression, pa.Array] = field(default_factory=dict)

    @staticmethod
    def of(table: pa.Table) -> RowBatch:
        """The rows of a sub-window's file."""
        signed = SIGN in table.schema.names
        sign = np.array(table.column(SIGN).to_numpy(), np.int8) if signed else None
        columns = columns_of(table.drop_columns([name for name in (TIME, SIGN, ENDS) if name in table.schema.names]))
        return RowBatch(columns, table.num_rows, times(table), sign)

    def value(self, expression: Expression) -> pa.Array:
        """The expression for every row, evaluated once."""
        if expression not in self._values:
            found = evaluate(expression, self.columns, self.count)
            self._values[expression] = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        return self._values[expression]

    def where(self, predicate: Expression) -> RowBatch:
        """The rows for which the predicate is true."""
        kept = np.asarray(self.value(predicate).fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def take(self, positions: Ints) -> RowBatch:
        """The rows at these positions, in this order."""
        index = pa.array(positions)
        columns = [column.take(index) for column in self.columns]
        ts = None if self.ts is None else self.ts[positions]
        return RowBatch(columns, len(positions), ts, None if self.sign is None else self.sign[positions])

    def project(self, expressions: Sequence[Expression]) -> RowBatch:
        """The same rows with other columns."""
        return RowBatch([self.value(expression) for expression in expressions], self.count, self.ts, self.sign)

    @property
    def signs(self) -> Signs:
        """The sign of every row."""
        return np.ones(self.count, np.int8) if self.sign is None else self.sign


class Groups:
    """The distinct keys of some rows, in order of first occurrence. Without key columns all rows form one group.

    `codes` are the group of each row, `first` the first row of each group.
    """

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
        """The group of every key of another table, -1 if there is none."""
        if not len(self):
            return np.full(rows, -1, np.int64)
        if not keys:
            return np.zeros(rows, np.int64)
        found = self._interner.find(*_hashed(keys, rows))
        return np.where(found < 0, -1, self._dense[found])


def _hashed(keys: Sequence[pa.Array], rows: int) -> Keys:
    low, high = hash_rows(keys, rows)
    return (low if low.flags.writeable else low.copy()), high


@dataclass(frozen=True)
class Summary(ABC):
    """A kind of summary of the rows that pass the filters, grouped by the keys."""

    #: names this kind in the files of stores; must never change, nor may the names of the fields
    file_kind: ClassVar[str]

    filters: tuple[Expression, ...]
    keys: tuple[Expression, ...]

    @property
    def identity(self) -> str:
        """A name that is the same for equal summaries in every process."""
        described = self.file_kind + repr(self).removeprefix(type(self).__name__)
        return f"{self.file_kind.lower()}-{hashlib.sha256(described.encode()).hexdigest()[:24]}"

    @property
    def subtractable(self) -> bool:
        """Whether expired rows can be subtracted."""
        return False

    @abstractmethod
    def build(self, rows: RowBatch) -> pa.Table:
        """Summarize rows that have passed the filters."""

    @abstractmethod
    def merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Merge one or more summaries."""

    def subtract(self, whole: pa.Table, parts: Sequence[pa.Table]) -> pa.Table:
        """Subtract the summaries of expired rows."""
        raise NotImplementedError(f"{type(self).__name__} is not subtractable")

    def key_columns(self, table: pa.Table) -> list[pa.Array]:
        """The keys in a summary."""
        return columns_of(table.select(self.key_names))

    @property
    def key_names(self) -> list[str]:
        """The names of the key columns."""
        return [f"k{index}" for index in range(len(self.keys))]


Tables = Mapping[Summary, pa.Table]
"""The summaries of some rows, by kind."""
