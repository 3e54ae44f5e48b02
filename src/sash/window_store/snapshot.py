"""The answer of a query over a live window, and all that is to be said about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from sash.errors import CatalogError
from sash.window_store.asking import Execution, Outcome
from sash.window_store.scheduling.running import Answer

ToSpark = Callable[[pa.Table], Any]


@dataclass(frozen=True)
class Snapshot:
    """The answer as of a window update: Q at the last instant before `as_of`, in microseconds.

    `freshness` is how long before the answer that update was, `response_time` how long the answer took, both in
    seconds. The counters say what was read: sub-windows row by row, summaries found, summaries made and left for others;
    and how often the query began again, or read a sub-window again, because the window moved. `errors` are the bounds
    that approximate aggregates promise.
    """

    table: pa.Table
    as_of: int
    update: int
    freshness: float
    response_time: float
    sub_windows_read: int
    summaries_read: int
    summaries_built: int
    restarts: int
    rescans: int
    isolation: str
    explain: str
    errors: dict[str, str] = field(default_factory=dict)
    spark: ToSpark | None = field(default=None, repr=False, compare=False)

    def to_pandas(self) -> pd.DataFrame:
        """The answer for pandas."""
        found: pd.DataFrame = self.table.to_pandas()
        return found

    def to_spark(self) -> Any:
        """The answer as a DataFrame of the engine's session."""
        if self.spark is None:
            raise CatalogError("this answer was made without an engine: there is no Spark session to give it to")
        return self.spark(self.table)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The answer as dicts."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found


def snapshots(
    execution: Execution,
    answer: Answer,
    outcome: Outcome,
    explain: str,
    isolation: str,
    now: float,
    spark: ToSpark | None,
) -> list[Snapshot]:
    """One per query of the execution; `now` is the wall clock when the answer was given."""
    counters = execution.counters
    return [
        Snapshot(
            table, outcome.youngest.end, outcome.youngest.number, max(0.0, now - outcome.youngest.swapped),
            answer.committed - answer.submitted, counters.sub_windows, counters.summaries, counters.built,
            answer.restarts, answer.rescans, isolation, explain, shape.core.errors, spark,
        )
        for table, shape in zip(outcome.tables, execution.question.shapes, strict=True)
    ]  # fmt: skip
