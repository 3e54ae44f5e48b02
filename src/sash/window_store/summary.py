"""A summary: what one sub-window says to an aggregate, small enough to keep and made to be merged (paper 2, 2.1).

Every summary is an Arrow table, key columns k0, k1 ... first. Two queries with the same filters, keys and argument have
the same summaries: `identity` names the file beside the sub-window.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sash.plan.expressions import Expression
from sash.window_store.cutting import columns_of
from sash.window_store.rows import Rows


@dataclass(frozen=True)
class Summary(ABC):
    """How to make summaries of one kind, of the rows that pass the filters, by the keys."""

    filters: tuple[Expression, ...]
    keys: tuple[Expression, ...]

    @property
    def identity(self) -> str:
        """The same for the same summary, in any process."""
        return f"{type(self).__name__.lower()}-{hashlib.sha256(repr(self).encode()).hexdigest()[:24]}"

    @property
    def subtractable(self) -> bool:
        """Whether what has expired can be taken off again."""
        return False

    @abstractmethod
    def build(self, rows: Rows) -> pa.Table:
        """The summary of rows that have passed the filters."""

    @abstractmethod
    def merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        """The summary of all the rows together; at least one part."""

    def subtract(self, whole: pa.Table, parts: Sequence[pa.Table]) -> pa.Table:
        """The summary of the whole without the parts."""
        raise NotImplementedError(f"{type(self).__name__} cannot take rows off")

    def key_columns(self, table: pa.Table) -> list[pa.Array]:
        """The keys in a summary."""
        return columns_of(table.select(self.key_names))

    @property
    def key_names(self) -> list[str]:
        """What the key columns are called."""
        return [f"k{index}" for index in range(len(self.keys))]


def filtered(rows: Rows, filters: Sequence[Expression]) -> Rows:
    """The rows that pass all filters, one after the other."""
    for predicate in filters:
        rows = rows.where(predicate)
    return rows
