"""The handle on a streaming query of Spark's: the base of running queries and of kept windows."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from sash.errors import SashError
from sash.spark.errors import sash_errors, to_sash_error

_POLL_SECONDS = 0.05


class StreamingHandle(ABC):
    """Controls a streaming query; errors of Spark are raised as `SashError`."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    @property
    def query(self) -> StreamingQuery:
        """Spark's own handle."""
        return self._query

    @property
    def id(self) -> str:
        """The id of the query, which its checkpoint keeps over restarts."""
        return str(self._query.id)

    @property
    def active(self) -> bool:
        """Whether the query is running."""
        return bool(self._query.isActive)

    @abstractmethod
    def progress(self) -> dict[str, Any]:
        """Return numbers about the last batch."""

    def drain_progress(self) -> list[dict[str, Any]]:
        """Return the progress of every batch that ended since the last call; empty where batches are not recorded."""
        return []

    def exception(self) -> SashError | None:
        """Return the error that ended the query, or None."""
        problem = self._query.exception()
        return None if problem is None else to_sash_error(problem)

    def stop(self) -> None:
        """Stop the query."""
        self._query.stop()

    def finish(self, timeout: float = 60) -> None:
        """Stop the query after its current batch, or after `timeout` seconds; the next start repeats an unfinished batch."""
        begun = self._query.lastProgress
        until = time.monotonic() + timeout
        while self._query.isActive and self._query.status["isTriggerActive"] and time.monotonic() < until:
            last = self._query.lastProgress
            if last is not None and (begun is None or last["batchId"] > begun["batchId"]):
                break
            time.sleep(_POLL_SECONDS)
        self.stop()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends by itself; return False if `timeout` seconds pass first. Raise the error that ended it."""
        with sash_errors():
            if timeout is None:
                self._query.awaitTermination()
                return True
            return bool(self._query.awaitTermination(max(1, math.ceil(timeout))))

    def process_all_available(self) -> None:
        """Wait until all rows that are in the sources now have been processed."""
        with sash_errors():
            self._query.processAllAvailable()

    process_all = process_all_available
