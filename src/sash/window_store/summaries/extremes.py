"""Summaries of extremes: the first or last row per group, the first k rows, or all rows, in a given order.

MIN and MAX order rows by the value itself, MIN_BY and MAX_BY by another column, FIRST and LAST by time. Ties are broken
as in the operators, so a result does not depend on how rows were split into sub-windows (paper 2, 2.1: associative
aggregates). ORDER BY with LIMIT works in the same way: the first k rows of the window are among the first k rows of each
sub-window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.aggregates.base import canonical
from sash.plan.expressions import Expression
from sash.plan.nodes import SortKey
from sash.state.hashing import byte_buffers, null_mask
from sash.state.jit import kernel
from sash.state.memory import Ints
from sash.state.ordering import Bytes
from sash.window_store.store.layout import TIME
from sash.window_store.store.tables import columns_of, sort_bytes
from sash.window_store.summaries.base import Groups, RowBatch, Summary

VALUE, ORDER = "value", "order"


@dataclass(frozen=True)
class Extreme(Summary):
    """The `value` of each group's last row (or first, unless `largest`), ordered by `by`, time if `timed`, and `order`.

    Rows whose `by` is NULL are ignored.
    """

    file_kind = "Best"

    value: Expression
    by: Expression | None
    order: tuple[Expression, ...]
    timed: bool
    largest: bool

    def build(self, rows: RowBatch) -> pa.Table:
        leading = [] if self.by is None else [rows.value(self.by)]
        moments = [pa.array(rows.ts)] if self.timed and rows.ts is not None else []
        value = canonical(rows.value(self.value))
        keys = [*leading, *moments, *(rows.value(part) for part in self.order), value]
        table = pa.Table.from_arrays(
            [*(canonical(rows.value(key)) for key in self.keys), sort_bytes(keys, (), rows.count), value],
            names=[*self.key_names, ORDER, VALUE],
        )
        mask = null_mask(leading[0]) if leading else None
        if mask is not None and mask.any():
            table = table.filter(pa.array(~mask))
        return self.merge([table, table.slice(0, 0)])

    def merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        if len(parts) == 1:
            return parts[0]
        table = pa.concat_tables(parts)
        groups = Groups(self.key_columns(table), table.num_rows)
        (order,) = columns_of(table.select([ORDER]))
        offsets, data = byte_buffers(order)
        chosen = _extreme_rows(groups.codes, np.array(offsets, np.int64), np.array(data), self.largest, len(groups))
        return table.take(pa.array(chosen))


@dataclass(frozen=True)
class TopRows(Summary):
    """The first `limit` rows. The order is total: only equal rows tie."""

    file_kind = "Top"

    columns: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    limit: int

    def build(self, rows: RowBatch) -> pa.Table:
        columns = [rows.value(expression) for expression in self.columns]
        names = [f"c{index}" for index in range(len(columns))]
        table = pa.Table.from_arrays([sort_bytes(columns, self.order, rows.count), *columns], names=[ORDER, *names])
        return self.merge([table, table.slice(0, 0)])

    def merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        if len(parts) == 1:
            return parts[0]
        table = pa.concat_tables(parts)
        return table.take(pc.sort_indices(table, sort_keys=[(ORDER, "ascending")])[: self.limit])


@dataclass(frozen=True)
class AllRows(Summary):
    """All rows, for queries that nothing smaller can answer."""

    file_kind = "Bag"

    columns: tuple[Expression, ...]

    def build(self, rows: RowBatch) -> pa.Table:
        names = [f"c{index}" for index in range(len(self.columns))]
        moments = [] if rows.ts is None else [pa.array(rows.ts)]
        found = [rows.value(expression) for expression in self.columns]
        return pa.Table.from_arrays([*moments, *found], names=[TIME, *names] if moments else names)

    def merge(self, parts: Sequence[pa.Table]) -> pa.Table:
        return pa.concat_tables(parts)


@kernel
def _extreme_rows(codes: Ints, offsets: Ints, data: Bytes, largest: bool, groups: int) -> Ints:
    """The row of each group whose bytes sort last (or first)."""
    found = np.full(groups, -1, np.int64)
    for row in range(len(codes)):
        other = found[codes[row]]
        if other < 0:
            found[codes[row]] = row
            continue
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        start2, length2 = offsets[other], offsets[other + 1] - offsets[other]
        sign = length - length2
        for index in range(min(length, length2)):
            if data[start + index] != data[start2 + index]:
                sign = np.int64(data[start + index]) - np.int64(data[start2 + index])
                break
        if (sign > 0) == largest and sign != 0:
            found[codes[row]] = row
    return found
