"""The current answer of a query: each batch of changes is applied to a multiset of rows."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sash.plan.nodes import SortKey
from sash.plan.types import Schema
from sash.variant_columns import holds_variants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[Any, ...]


class CurrentAnswer:
    """The answer after the last batch; a function sink. `as_of` is the time of the last change."""

    def __init__(self, schema: Schema, order: Sequence[SortKey] = ()) -> None:
        self.schema = schema
        self.order = order
        self.rows: Counter[Row] = Counter()
        self.batches = 0
        self.changes = 0
        self.as_of: Any = None
        self.lock = threading.Lock()

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Apply a batch of netted changes; variants are texts of JSON, which are equal where they are."""
        if any(holds_variants(field.dtype) for field in self.schema):
            from sash.spark.sql_types import readable_frame

            batch = readable_frame(batch)
        changes = [(row[0], row[1], tuple(row[2:])) for row in batch.collect()]
        with self.lock:
            self.apply(changes)

    def apply(self, changes: list[tuple[str, Any, Row]]) -> None:
        """Apply changes to the answer."""
        ordered = sorted(changes, key=lambda change: (change[1], change[0] == "+"))
        for op, _, row in ordered:
            self.rows[row] += 1 if op == "+" else -1
            if not self.rows[row]:
                del self.rows[row]
        self.batches += 1
        self.changes += len(changes)
        if ordered:
            self.as_of = ordered[-1][1]
        self.record(ordered)

    def record(self, changes: list[tuple[str, Any, Row]]) -> None:
        """Called with the changes of a batch in the order in which they took effect."""

    def answer(self) -> list[Row]:
        """The rows with their duplicates, in the order of the query, and otherwise by column with NULLs last."""
        listed = sorted(self.rows.elements(), key=lambda row: [comparable(value, nulls_first=False) for value in row])
        return in_order(listed, self.order)


def in_order(rows: Sequence[Row], order: Sequence[SortKey]) -> list[Row]:
    """The rows by the keys of the query; rows with equal keys stay in their order."""
    listed = list(rows)
    for key in reversed(order):
        first = key.nulls_first != key.descending
        listed.sort(key=lambda row: comparable(row[key.column], nulls_first=first), reverse=key.descending)
    return listed


def comparable(value: Any, *, nulls_first: bool) -> tuple[bool, bool, Any]:
    """A sort key for a value: NULLs are before or after all others, and NaN is the largest number."""
    nan = isinstance(value, float) and math.isnan(value)
    return (value is None) != nulls_first, nan, "" if value is None or nan else value
