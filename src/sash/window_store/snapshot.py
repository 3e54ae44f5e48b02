"""The answer of a query over a live window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from sash.display import TextTable, section
from sash.errors import CatalogError

_MOST_ROWS = 50

ToSpark = Callable[[pa.Table], Any]


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The answer as of a window update: the query's answer at the last instant before `as_of`, in microseconds.

    `update` is the number of that update. `freshness` is the age of the update when the answer was ready,
    `response_time` the time that the answer took, both in seconds. `sub_windows_read` counts sub-windows whose rows were
    scanned, `summaries_read` stored summaries, and `summaries_built` summaries that the query stored. `restarts` counts
    how often window updates made the query start again, `rescans` how often they made it repeat a read. `reads_shared`
    counts reads that another query of the group had scanned, and `reads_given_up` reads that were repeated because the query
    was suspended and memory was short. `isolation` is
    the isolation level used. `errors` are the error bounds of approximate aggregates, by column.
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
    reads_shared: int = 0
    reads_given_up: int = 0
    plan: str = field(repr=False)
    errors: dict[str, str] = field(default_factory=dict)
    spark: ToSpark | None = field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str:
        rows = [list(row.values()) for row in self.table.slice(0, _MOST_ROWS + 1).to_pylist()]
        more = f"; the first {_MOST_ROWS} of {self.table.num_rows:,} rows" if self.table.num_rows > _MOST_ROWS else ""
        shown = TextTable(self.table.column_names, rows[:_MOST_ROWS], most=_MOST_ROWS, ends=False)
        return section(f"Snapshot as of window update {self.update}{more}", shown.html())

    def explain(self) -> str:
        """The plan of the query: its window, its access path and its options."""
        return self.plan

    def to_pandas(self) -> pd.DataFrame:
        """The answer as a pandas DataFrame."""
        found: pd.DataFrame = self.table.to_pandas()
        return found

    def to_spark(self) -> Any:
        """The answer as a DataFrame of the engine's session."""
        if self.spark is None:
            raise CatalogError("this snapshot has no Spark session: take it with engine.snapshot to use to_spark")
        return self.spark(self.table)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The answer as a list of dicts."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found
