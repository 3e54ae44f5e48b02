"""The base class of summaries: small tables, one per sub-window, that merge into the result of a query (paper 2, 2.1).

Every summary is an Arrow table whose first columns are the keys k0, k1 ... Queries with equal filters, keys and argument
share their summaries: `identity` is the name of the file stored beside the sub-window.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from sash.plan.expressions import Expression
from sash.window_store.store.tables import columns_of
from sash.window_store.summaries.rows import RowBatch


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
