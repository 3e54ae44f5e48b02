"""The result of a replay: the change stream, the answer at any instant, and the counts of the operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.answer import in_order
from sash.display import TextTable, counted, section
from sash.errors import CatalogError
from sash.plan.sql_types import exported
from sash.plan.statistics import Statistics
from sash.plan.types import STRING, Schema
from sash.planning import Planned
from sash.runtime.analyze import Actual
from sash.runtime.counts import Counts
from sash.testing.times import Instant, TimeUnit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Change:
    """One change of the answer. `ts` and `released` are in the replay's unit; `released` is None if it never was.

    `batch` is the number, from 0, of the micro-batch that released it; None if none did, or with simulated delays.
    """

    ts: int | float
    op: str
    row: dict[str, Any]
    released: int | float | None
    batch: int | None = field(default=None, compare=False)


@dataclass(frozen=True, repr=False)
class Result:
    """The changes of the answer in order of time, with the counts of the operators and the observed statistics.

    `print(result)` shows the changes as a table, and so does a notebook.

    `late` counts the rows that arrived too late, `state_rows` the rows in state at the end, and `switches` how often the
    edges of each operator changed their mode (piggybacking). `statistics` has the rates, rows, distinct and frequent values of every stream
    and relation.
    """

    changes: list[Change]
    counts: dict[str, Counts] = field(default_factory=dict)
    late: int = 0
    state_rows: int = 0
    schema: Schema = ()
    switches: dict[str, int] = field(default_factory=dict)
    planned: Planned | None = None
    actual: Actual | None = None
    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    unit: TimeUnit = field(default_factory=lambda: TimeUnit("ms"))
    """The unit of the times, and whether they are shown as datetimes, because the replay's were given so."""

    def __repr__(self) -> str:
        return f"{self._summary}\n{self._table.plain()}" if self.changes else self._summary

    def _repr_html_(self) -> str:
        return section(self._summary, self._table.html())

    @property
    def _summary(self) -> str:
        count = len(self.changes)
        late = f", {self.late:,} late rows" if self.late else ""
        if not count:
            return f"no changes{late}"
        first, last = (self.unit.shown(change.ts) for change in (self.changes[0], self.changes[-1]))
        return f"{counted(count, 'change', 'changes')} from {first} to {last}{late}"

    @property
    def _table(self) -> TextTable:
        names = ["_ts", "_op", *(column.name for column in self.schema)]
        return TextTable(names, [[self.unit.value(c.ts), c.op, *c.row.values()] for c in self.changes])

    def explain(self) -> str:
        """The plan as it ran (EXPLAIN ANALYZE): rows, rates and expirations of every operator beside the estimates.

        Rows in state are those after the last row; a replay on Spark does not have them.
        """
        if self.planned is None:
            raise CatalogError("this result has no plan to explain: call explain() on a result of replay()")
        return self.planned.explain(actual=self.actual)

    @property
    def delays(self) -> list[int | float]:
        """The time from each change's instant until its release, in the replay's unit, without those never released."""
        return [change.released - change.ts for change in self.changes if change.released is not None]

    def to_arrow(self, at: Instant | None = None) -> pa.Table:
        """The changes as an Arrow table, with their times and signs in `_ts` and `_op`; with `at`, the answer then.

        `_ts` is in the replay's unit, or a timestamp if the replay's times were given as datetimes.
        """
        rows = [change.row for change in self.changes] if at is None else self.at(at)
        columns = {
            column.name: pa.array([row[column.name] for row in rows], exported(column.dtype)) for column in self.schema
        }
        if at is not None:
            return pa.table(columns)
        ops = pa.array([change.op for change in self.changes], STRING)
        return pa.table({"_ts": self.unit.column([change.ts for change in self.changes]), "_op": ops, **columns})

    def to_pandas(self, at: Instant | None = None) -> pd.DataFrame:
        """The changes as a pandas DataFrame, as in `to_arrow`; with `at`, the answer at that instant."""
        found: pd.DataFrame = self.to_arrow(at).to_pandas()
        return found

    def at(self, instant: Instant) -> list[dict[str, Any]]:
        """Q(T): the rows of the answer at an instant, a number in the replay's unit or a datetime, by the query's ORDER BY."""
        limit = self.unit.limit(instant)
        rows: dict[Any, list[dict[str, Any]]] = {}
        for change in self.changes:
            if change.ts > limit:
                break
            same = rows.setdefault(_identity(change.row), [])
            if change.op == "+":
                same.append(change.row)
            else:
                same.pop()
        found = [row for same in rows.values() for row in same]
        order = () if self.planned is None else self.planned.order
        if not order:
            return found
        names = [column.name for column in self.schema]
        return [dict(zip(names, row, strict=True)) for row in in_order([tuple(row.values()) for row in found], order)]


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(map(_hashable, row.values()))


def _hashable(value: Any) -> Any:
    """The value as one that is equal to itself only: NaN is, and -0.0 is not 0.0."""
    if isinstance(value, float) and (value == 0 or math.isnan(value)):
        return repr(value)
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple((name, _hashable(inner)) for name, inner in value.items())
    return value
