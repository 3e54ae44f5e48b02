"""The core of a query: the first node that brings rows together, evaluated per sub-window and merged.

Each aggregate is answered from a summary; DISTINCT and ORDER BY with LIMIT are summaries themselves, and where there is
no such node the rows are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sash.plan.expressions import AggregateCall, Expression
from sash.plan.nodes import Aggregate, Distinct, TopK
from sash.window_store.answers import Question, Tables, answer, existing, sum_flavor
from sash.window_store.best import ORDER, Bag, Best, Top
from sash.window_store.cells import Cells, Flavor
from sash.window_store.cutting import columns_of
from sash.window_store.manifest import TIME
from sash.window_store.rows import Rows
from sash.window_store.sketches import Sketch
from sash.window_store.summary import Summary, filtered

_PRECISION = {"approx_count_distinct": 0.05, "approx_percentile": 1000.0, "approx_top_k": 1024.0}


@dataclass(frozen=True)
class Core:
    """`node` over the rows that pass the filters, its columns being these expressions over them.

    `signed` says that the rows are changes, some of them `-`.
    """

    filters: tuple[Expression, ...]
    columns: tuple[Expression, ...]
    node: Aggregate | Distinct | TopK | None
    signed: bool = False

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The aggregates of the core, each with its summary."""
        if not isinstance(self.node, Aggregate):
            return ()
        return tuple(Question(call, self._summary(call)) for call in self.node.aggregates)

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """All that has to be known of every sub-window."""
        match self.node:
            case Aggregate():
                return tuple(dict.fromkeys([self._existence, *(question.summary for question in self.questions)]))
            case Distinct():
                return (Cells(self.filters, self.columns, "rows"),)
            case TopK():
                return (Top(self.filters, (), self.columns, self.node.order, self.node.limit + self.node.offset),)
            case None:
                return (Bag(self.filters, (), self.columns),)

    @property
    def subtractable(self) -> bool:
        """Whether expired rows can be taken off an answer's state."""
        return all(summary.subtractable for summary in self.summaries)

    @property
    def summarized(self) -> bool:
        """Whether summaries can be kept and are smaller than the rows themselves: rows that may still be taken back leave
        only what can be taken off."""
        return self.node is not None and (self.subtractable or not self.signed)

    @property
    def errors(self) -> dict[str, str]:
        """What the approximate aggregates promise, by the name they have in the core."""
        if not isinstance(self.node, Aggregate):
            return {}
        named = zip(self.node.names, self.questions, strict=True)
        return {name: q.summary.error for name, q in named if isinstance(q.summary, Sketch)}

    def build(self, rows: Rows) -> dict[Summary, pa.Table]:
        """Every summary of some rows."""
        passed = filtered(rows, self.filters)
        return {summary: summary.build(passed) for summary in self.summaries}

    def merged(self, tables: Tables) -> Rows:
        """What the node gives, from the merged summaries."""
        match self.node:
            case Aggregate():
                keys, groups = existing(tables[self._existence], self._existence)
                found = [answer(question, tables[question.summary], keys, groups) for question in self.questions]
                return Rows([*keys, *found], groups)
            case Distinct():
                (summary,) = self.summaries
                assert isinstance(summary, Cells)
                keys, groups = existing(tables[summary], summary)
                return Rows(keys, groups)
            case TopK():
                table = tables[self.summaries[0]].drop_columns([ORDER]).slice(self.node.offset)
                return Rows(columns_of(table), table.num_rows)
            case None:
                table = tables[self.summaries[0]]
                timed = TIME in table.schema.names
                ts = np.array(table.column(TIME).to_numpy(), np.int64) if timed else None
                return Rows(columns_of(table.drop_columns([TIME] if timed else [])), table.num_rows, ts)

    @property
    def _existence(self) -> Cells:
        """How many rows each group has: whether it is there."""
        assert isinstance(self.node, Aggregate)
        return Cells(self.filters, tuple(self.columns[key] for key in self.node.keys), "rows")

    def _summary(self, call: AggregateCall) -> Summary:
        keys = self._existence.keys
        arguments = [self.columns[column.index] for column in call.arguments]
        if call.function == "count_star" or not arguments:
            return self._existence
        first = arguments[0]

        def cells(flavor: Flavor) -> Cells:
            return Cells(self.filters, keys, flavor, first)

        match call.function:
            case "count" | "sum" | "avg" if call.distinct:
                return cells("values")
            case "median" | "percentile":
                return cells("values")
            case "count":
                return cells("known")
            case "sum" | "avg":
                return cells(sum_flavor(first.dtype))
            case "min" | "max" if self.signed:
                return cells("values")
            case "min" | "max":
                return Best(self.filters, keys, first, first, (), False, call.function == "max")
            case "min_by" | "max_by":
                return Best(self.filters, keys, first, arguments[1], self.columns, True, call.function == "max_by")
            case "first" | "last":
                return Best(self.filters, keys, first, None, self.columns, True, call.function == "last")
            case "approx_count_distinct" | "approx_percentile" | "approx_top_k":
                given = _PRECISION[call.function] if call.precision is None else call.precision
                return Sketch(self.filters, keys, call.function, first, given)
            case _:
                return cells("spread")
