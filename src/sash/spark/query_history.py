"""Keeps the history of a query that is a Spark streaming query of its own.

Its batches have no ledger and their clocks are known only when Spark reports them, after they are committed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.history.limits import HistoryLimits
from sash.spark.generations import last_batch
from sash.spark.job_history import JobHistory, history_folder
from sash.spark.sinks.batch import WriteBatch

if TYPE_CHECKING:
    from sash.spark.folders import Folder
    from sash.spark.sinks.base import OutputSpec
    from sash.spark.sinks.batch import Batch


class QueryHistory:
    """The history of one run of a query, given its checkpoint."""

    def __init__(
        self, run_folder: Path, limits: HistoryLimits, query: str, spec: OutputSpec, checkpoint: Folder
    ) -> None:
        self._folder, self._query = history_folder(run_folder, query), query
        self._history = JobHistory(self._folder, limits)
        self._history.open([(query, spec)], fresh=last_batch(checkpoint)[0] is None, switched=None)
        self._record = self._history.record(query, spec)

    def writing(self, write: WriteBatch) -> WriteBatch:
        """Write batches to the sink, and keep what it got."""

        def write_and_keep(batch: Batch, number: int) -> None:
            self._history.begin(number)
            try:
                write(batch, number)
                self._record(batch, number)
            finally:
                self._history.end(number)

        return write_and_keep

    def on_batch(self, progress: Mapping[str, Any]) -> None:
        """Publish a batch that Spark reports, with the clock of the query after it."""
        clock = progress.get("watermark")
        self._history.commit(progress["batch"], {} if clock is None else {self._query: clock})

    def close(self) -> None:
        """End the history; the next run continues it."""
        self._history.close()

    def remove(self) -> None:
        """End the history, and remove it: the query is dropped."""
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)
