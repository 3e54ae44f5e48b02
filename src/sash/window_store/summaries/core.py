"""The core of a query: its first node that combines rows, evaluated per sub-window and merged.

Each aggregate is evaluated from a summary. DISTINCT and ORDER BY with LIMIT are summaries themselves. A query without
such a node uses the rows as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sash.plan.expressions import AggregateCall, Case, Expression, Literal
from sash.plan.nodes import Aggregate, Distinct, TopK
from sash.plan.types import INT
from sash.window_store.store.layout import TIME
from sash.window_store.store.tables import columns_of
from sash.window_store.summaries.additive import AdditiveSummary, Flavor
from sash.window_store.summaries.base import RowBatch, Summary, Tables
from sash.window_store.summaries.evaluate import evaluate, groups_with_rows, sum_flavor
from sash.window_store.summaries.extremes import ORDER, AllRows, Extreme, TopRows
from sash.window_store.summaries.sketches import Sketch

_PRECISION = {"approx_count_distinct": 0.05, "approx_percentile": 1000.0, "approx_top_k": 1024.0}


@dataclass(frozen=True)
class Core:
    """`node` over the rows that pass the filters. `columns` are its input columns, as expressions over these rows.

    With `signed`, the rows are changes and may be retractions.
    """

    filters: tuple[Expression, ...]
    columns: tuple[Expression, ...]
    node: Aggregate | Distinct | TopK | None
    signed: bool = False

    @cached_property
    def aggregates(self) -> tuple[tuple[AggregateCall, Summary], ...]:
        """The aggregates of the core, each with its summary."""
        if not isinstance(self.node, Aggregate):
            return ()
        return tuple((call, self._summary(call)) for call in self.node.aggregates)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """The summaries that the core needs of every sub-window."""
        match self.node:
            case Aggregate():
                return tuple(dict.fromkeys([self._row_counts, *(summary for _, summary in self.aggregates)]))
            case Distinct():
                return (AdditiveSummary(self.filters, self.columns, "rows"),)
            case TopK():
                return (TopRows(self.filters, (), self.columns, self.node.order, self.node.limit + self.node.offset),)
            case None:
                return (AllRows(self.filters, (), self.columns),)

    @property
    def subtractable(self) -> bool:
        """Whether expired rows can be subtracted from all summaries."""
        return all(summary.subtractable for summary in self.summaries)

    @property
    def summarized(self) -> bool:
        """Whether summaries can be stored and are smaller than the rows. Signed rows need subtractable summaries."""
        return self.node is not None and (self.subtractable or not self.signed)

    @property
    def errors(self) -> dict[str, str]:
        """The error bounds of approximate aggregates, by their names in the core."""
        if not isinstance(self.node, Aggregate):
            return {}
        named = zip(self.node.names, self.aggregates, strict=True)
        return {name: summary.error for name, (_, summary) in named if isinstance(summary, Sketch)}

    def build(self, rows: RowBatch) -> dict[Summary, pa.Table]:
        """Build all summaries of some rows."""
        for predicate in self.filters:
            rows = rows.where(predicate)
        return {summary: summary.build(rows) for summary in self.summaries}

    def result(self, tables: Tables) -> RowBatch:
        """The output of the node, from merged summaries."""
        match self.node:
            case Aggregate():
                keys, groups = groups_with_rows(tables[self._row_counts], self._row_counts)
                found = [evaluate(call, summary, tables[summary], keys, groups) for call, summary in self.aggregates]
                return RowBatch([*keys, *found], groups)
            case Distinct():
                (summary,) = self.summaries
                assert isinstance(summary, AdditiveSummary)
                keys, groups = groups_with_rows(tables[summary], summary)
                return RowBatch(keys, groups)
            case TopK():
                table = tables[self.summaries[0]].drop_columns([ORDER]).slice(self.node.offset)
                return RowBatch(columns_of(table), table.num_rows)
            case None:
                table = tables[self.summaries[0]]
                timed = TIME in table.schema.names
                ts = np.array(table.column(TIME).to_numpy(), np.int64) if timed else None
                return RowBatch(columns_of(table.drop_columns([TIME] if timed else [])), table.num_rows, ts)

    @property
    def _row_counts(self) -> AdditiveSummary:
        """The number of rows of each group: a group exists while it has rows."""
        assert isinstance(self.node, Aggregate)
        return AdditiveSummary(self.filters, tuple(self.columns[key] for key in self.node.keys), "rows")

    def _summary(self, call: AggregateCall) -> Summary:
        keys = self._row_counts.keys
        arguments = [self.columns[column.index] for column in call.arguments]
        if call.function == "count_star" or not arguments:
            return self._row_counts
        first = arguments[0]

        def additive(flavor: Flavor) -> AdditiveSummary:
            return AdditiveSummary(self.filters, keys, flavor, first)

        match call.function:
            case "count" | "sum" | "avg" if call.distinct:
                return additive("values")
            case "median" | "percentile":
                return additive("values")
            case "count":
                return additive("known")
            case "sum" | "avg":
                return additive(sum_flavor(first.dtype))
            case "min" | "max" if self.signed:
                return additive("values")
            case "min" | "max":
                return Extreme(self.filters, keys, first, first, (), False, call.function == "max")
            case "min_by" | "max_by":
                return Extreme(self.filters, keys, first, arguments[1], self.columns, True, call.function == "max_by")
            case "first" | "last":
                kept = None if len(arguments) == 1 else Case(((arguments[1], Literal(1, INT)),), None, INT)
                return Extreme(self.filters, keys, first, kept, self.columns, True, call.function == "last")
            case "approx_count_distinct" | "approx_percentile" | "approx_top_k":
                given = _PRECISION[call.function] if call.precision is None else call.precision
                return Sketch(self.filters, keys, call.function, first, given)
            case _:
                return additive("spread")
