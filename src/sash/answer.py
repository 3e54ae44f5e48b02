"""The current answer of a query: each batch of changes is applied to a multiset of rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sash.plan.expressions import Column
from sash.plan.nodes import Node, Project, SortKey, TopK
from sash.plan.types import Schema

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
        """Apply a batch of netted changes."""
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
        listed = sorted(self.rows.elements(), key=lambda row: [_comparable(value, nulls_first=False) for value in row])
        for key in reversed(self.order):
            first = key.nulls_first != key.descending
            listed.sort(key=lambda row: _comparable(row[key.column], nulls_first=first), reverse=key.descending)
        return listed


def _comparable(value: Any, *, nulls_first: bool) -> tuple[bool, Any]:
    return (value is None) != nulls_first, "" if value is None else value


def order_of(node: Node) -> tuple[SortKey, ...]:
    """The ORDER BY at the top of a query, if all its keys are columns of the answer; else nothing."""
    if isinstance(node, TopK):
        return node.order
    if not isinstance(node, Project):
        return ()
    positions = {e.index: at for at, e in reversed(list(enumerate(node.expressions))) if isinstance(e, Column)}
    below = order_of(node.child)
    if any(key.column not in positions for key in below):
        return ()
    return tuple(replace(key, column=positions[key.column]) for key in below)
