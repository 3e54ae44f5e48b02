"""The handle on a streaming query of Spark's: the base of running queries and of kept windows."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from sash.errors import SashError
from sash.spark.checkpoint_lock import release_lock
from sash.spark.errors import SPARK_ERRORS, sash_errors, to_sash_error
from sash.spark.sinks.retry import Retries
from sash.spark.sinks.start import WriteFailure

_POLL_SECONDS = 0.05


Diagnosis = Callable[[SashError], SashError]
"""Adds to an error what can be found out after it: the file and the row."""


class StreamingHandle(ABC):
    """Controls a streaming query; errors of Spark are raised as `SashError`."""

    def __init__(
        self,
        query: StreamingQuery,
        retries: Retries | None = None,
        failure: WriteFailure | None = None,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self._query = query
        self._retries = retries
        self._failure = failure or WriteFailure()
        self._diagnosis = diagnosis
        self._error: SashError | None = None

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
        with sash_errors():
            return bool(self._query.isActive)

    @abstractmethod
    def progress(self) -> dict[str, Any]:
        """Return numbers about the last batch."""

    def drain_progress(self) -> list[dict[str, Any]]:
        """Return the progress of every batch that ended since the last call; empty where batches are not recorded."""
        return []

    def stream_warnings(self, batches: list[dict[str, Any]]) -> list[str]:
        """Return warnings that are due about the streams, given what `drain_progress` returned; none by default."""
        return []

    def exception(self) -> SashError | None:
        """Return the error that ended the query, or None."""
        with sash_errors():
            problem = self._query.exception()
        return None if problem is None else self._error_of(problem)

    def _error_of(self, problem: BaseException) -> SashError:
        """The error that ended the query, given what Spark raised; made once, because its trace is written to the log."""
        if self._error is None:
            error = to_sash_error(self._failure.problem or problem)
            self._error = error if self._diagnosis is None else self._diagnosis(error)
        return self._error

    def stop(self) -> None:
        """Stop the query, and let others use its checkpoint."""
        if self._retries is not None:
            self._retries.stop()
        try:
            with sash_errors():
                self._query.stop()
        finally:
            release_lock(self.id)

    def finish(self, timeout: float = 60) -> None:
        """Stop the query after its current batch, or after `timeout` seconds; the next start repeats an unfinished batch.

        A batch that its sink has failed to write is not retried.
        """
        if self._retries is not None:
            self._retries.stop()
        await_batch(self._query, timeout)
        self.stop()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends by itself; return False if `timeout` seconds pass first. Raise the error that ended it."""
        with self._ending():
            if timeout is None:
                self._query.awaitTermination()
                return True
            return bool(self._query.awaitTermination(max(1, math.ceil(timeout))))

    def process_all_available(self) -> None:
        """Wait until all rows that are in the sources now have been processed."""
        with self._ending():
            self._query.processAllAvailable()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Raise the error that ended the query; let others use the checkpoint of a query that has ended."""
        try:
            yield
        except SPARK_ERRORS as problem:
            raise self._error_of(problem) from None
        finally:
            with suppress(*SPARK_ERRORS):
                if not self._query.isActive:
                    release_lock(self.id)

    process_all = process_all_available


def await_batch(query: StreamingQuery, timeout: float) -> None:
    """Wait until the current batch of a query has ended, for at most `timeout` seconds."""
    begun = query.lastProgress
    until = time.monotonic() + timeout
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
        last = query.lastProgress
        if last is not None and (begun is None or last["batchId"] > begun["batchId"]):
            break
        time.sleep(_POLL_SECONDS)


def await_idle(query: StreamingQuery, timeout: float) -> None:
    """Wait until a query has ended or waits for its next batch, for at most `timeout` seconds."""
    until = time.monotonic() + timeout
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
