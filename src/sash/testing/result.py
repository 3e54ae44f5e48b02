"""The result of a replay: the change stream, the answer at any instant, and the counts of the operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sash.errors import CatalogError
from sash.plan.statistics import Statistics
from sash.plan.types import Schema
from sash.planning import Planned
from sash.runtime.analyze import Actual
from sash.runtime.counts import Counts


@dataclass(frozen=True)
class Change:
    """One change of the answer. `ts` and `released` are in the replay's unit; `released` is None if it never was."""

    ts: int | float
    op: str
    row: dict[str, Any]
    released: int | float | None


@dataclass(frozen=True)
class Result:
    """The changes of the answer in order of time, with the counts of the operators and the observed statistics.

    `late` counts the rows that arrived too late, `state_rows` the rows in state at the end, and `switches` how often each
    edge changed its mode (piggybacking). `statistics` has the rates, rows, distinct and frequent values of every stream
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

    def at(self, instant: float) -> list[dict[str, Any]]:
        """Q(T): the rows of the answer at an instant."""
        rows: dict[Any, list[dict[str, Any]]] = {}
        for change in self.changes:
            if change.ts > instant:
                break
            same = rows.setdefault(_identity(change.row), [])
            if change.op == "+":
                same.append(change.row)
            else:
                same.pop()
        return [row for same in rows.values() for row in same]


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in row.values())
