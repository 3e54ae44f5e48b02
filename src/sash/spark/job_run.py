"""The run of a job: its Spark query, which is started again in place, on the same checkpoint, when a query must be parked.

A thread waits for the end of the Spark query and decides. If operators failed, the queries that read them are parked. If
an expression of a source failed in Spark, whose error names no query, the batch is tried with fewer and fewer of the
queries that have such expressions until the one that fails is found. A Python worker that did not start in time is tried
again a few times. Everything else ends the job.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from pyspark.sql.streaming.query import StreamingQuery

from sash.errors import QueryFailedError, SashError, StageError
from sash.physical.nodes import PhysicalPlan, StreamLeg
from sash.plan.expression_safety import may_fail
from sash.plan.nodes import Expand, Filter, Project, walk
from sash.spark.causes import is_data_exception, is_worker_start, one_line
from sash.spark.errors import SPARK_ERRORS, error_texts, to_sash_error
from sash.spark.file_batches import FileBatches
from sash.spark.handle import Diagnosis, await_batch, await_idle
from sash.spark.job_batch import BatchFunction, TrialPassedError
from sash.spark.job_output import OnError
from sash.spark.job_progress import JobProgress
from sash.spark.layout import Suspended
from sash.spark.parking import Parking
from sash.spark.stage_errors import failed_queries

_MOST_RESTARTS = 3
"""Restarts in a row because a worker did not start; a batch that succeeds resets their number."""

_PAUSE = 1.0

StartQuery = Callable[[Suspended], StreamingQuery]
"""Starts the job's Spark query without the queries that are suspended."""


class Search:
    """Finds one query that fails among suspects, by trying the batch with half of them at a time."""

    def __init__(self, suspects: Sequence[str], error: SashError) -> None:
        self.error = error
        self._all = tuple(suspects)
        self._left = list(suspects)

    @property
    def culprit(self) -> str | None:
        """The query that fails, if it is known."""
        return self._left[0] if len(self._left) == 1 else None

    @property
    def left_out(self) -> frozenset[str]:
        """The queries to leave out of the next trial."""
        return frozenset(self._all) - frozenset(self._tried)

    @property
    def _tried(self) -> list[str]:
        return self._left[: len(self._left) // 2]

    def learn(self, *, failed: bool) -> None:
        """Take the result of the trial."""
        tried = self._tried
        self._left = tried if failed else self._left[len(tried) :]


class JobRun:
    """Runs a job's Spark query until the job ends."""

    def __init__(
        self,
        start: StartQuery,
        batches: BatchFunction,
        progress: JobProgress,
        parking: Parking,
        on_error: Mapping[str, OnError],
        suspects: Sequence[str],
        diagnosis: Diagnosis,
        files: FileBatches | None = None,
    ) -> None:
        self._start = start
        self.batches = batches
        self._progress = progress
        self._parking = parking
        self._on_error = on_error
        self._suspects = suspects
        self._diagnosis = diagnosis
        self._files = files
        self._search: Search | None = None
        self._restarts = 0
        self._restart = False
        self._paused = self._waiting = False
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._released = threading.Event()
        self._changed = threading.Condition()
        self.error: SashError | None = None
        self.on_end: Callable[[], None] | None = None
        self._failed_batch = -1
        self._reporting: StreamingQuery | None = None
        batches.before_batch, batches.on_parked = self._before_batch, self.restart
        self.query = self._reporting = start(parking.suspended)
        threading.Thread(target=self._supervise, name="sash-job", daemon=True).start()

    @property
    def active(self) -> bool:
        """Whether the job is running, or being started again."""
        return not self._ended.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended and given up its checkpoint; return whether it has."""
        return self._released.wait(timeout)

    def process_all_available(self) -> None:
        """Wait until all rows that are in the sources now have been processed."""
        while True:
            query = self.query
            try:
                query.processAllAvailable()
            except SPARK_ERRORS:
                pass
            else:
                if not self._restart:
                    break
            with self._changed:
                self._changed.wait_for(lambda query=query: self.query is not query or not self.active)  # type: ignore[misc]
            if not self.active:
                break

    def stop(self) -> None:
        """Stop the Spark query, and wait until the run has ended."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        self.batches.close()
        with suppress(*SPARK_ERRORS):
            self.query.stop()
        self._released.wait()

    def finish(self, timeout: float) -> None:
        """Let the current batch end, for at most `timeout` seconds, and stop before the next one."""
        self._stopping.set()
        self.batches.ends = True
        query = self.query
        with suppress(*SPARK_ERRORS):
            await_idle(query, timeout)
        self.stop()

    @property
    def paused(self) -> bool:
        """Whether the Spark query is stopped until `resume`, or will be after its current batch."""
        return self._paused

    def pause(self) -> None:
        """Stop the Spark query after its current batch, and wait for that; the job goes on with `resume`."""
        self._paused = True
        self._stop_after_batch()
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self.active)

    def resume(self) -> None:
        """Start the Spark query again after `pause`, and wait until it has been started."""
        with self._changed:
            if self._paused:
                query, self._paused = self.query, False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self.query is not query or not self.active)

    def restart(self) -> None:
        """Start the Spark query again after its current batch, because the parked queries have changed."""
        if not self._restart:
            self._restart = True
            threading.Thread(target=self._stop_after_batch, name="sash-job-restart", daemon=True).start()

    def restart_and_wait(self) -> None:
        """As `restart`, and wait until the new Spark query runs, or the job has ended."""
        query = self.query
        self.restart()
        with self._changed:
            self._changed.wait_for(lambda: self.query is not query or not self.active)

    def update(self) -> None:
        """Count the batch that Spark has reported last, unless it has been counted."""
        if self._reporting is not None:
            with suppress(*SPARK_ERRORS):
                self._progress.update(self._reporting.lastProgress)

    def _before_batch(self, number: int) -> None:
        self.update()
        if self._files is not None and self._reporting is not None:
            self._files.adapt(self._reporting, self._reporting.lastProgress)
        if number > self._failed_batch:
            self._restarts = 0

    def _stop_after_batch(self) -> None:
        query = self.query
        with suppress(*SPARK_ERRORS):
            await_batch(query, math.inf)
            query.stop()

    def _supervise(self) -> None:
        try:
            while self._goes_on(self._await_end()) and self._await_resume():
                self.batches.trial = self._search is not None
                left_out = self._search.left_out if self._search is not None else frozenset()
                self._restart = False
                self._reporting = None
                query = self._start(self._parking.suspended.without(left_out))
                with self._changed:
                    self.query = self._reporting = query
                    self._changed.notify_all()
                if self._stopping.is_set():
                    query.stop()
        except Exception as problem:  # noqa: BLE001  (whatever ends this thread ends the job)
            self.error = to_sash_error(problem)
        finally:
            self._ended.set()
            with self._changed:
                self._changed.notify_all()
            if self.on_end is not None:
                self.on_end()
            self._released.set()

    def _await_resume(self) -> bool:
        """Wait while the job is paused; return whether it is to be started again."""
        with self._changed:
            self._waiting = self._paused
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._paused or self._stopping.is_set())
            self._waiting = False
        return not self._stopping.is_set()

    def _await_end(self) -> BaseException | None:
        """Wait for the end of the Spark query; return the error that ended it."""
        try:
            self.query.awaitTermination()
        except SPARK_ERRORS as problem:
            self._failed_batch = self.batches.number
            return self.batches.failure.problem or problem
        finally:
            self.update()
        return None

    def _goes_on(self, problem: BaseException | None) -> bool:
        """Decide what happens after the Spark query has ended: whether it is started again."""
        if self._stopping.is_set():
            return False
        if problem is None:
            return self._restart or self._paused
        if isinstance(problem, TrialPassedError) and self._search is not None:
            return self._learn(self._search, failed=False)
        texts = error_texts(problem)
        error = to_sash_error(problem)
        if is_worker_start(texts) and self._restarts < _MOST_RESTARTS:
            self._restarts += 1
            logging.getLogger("sash").warning("a Python worker did not start in time; the job starts its batch again")
            return not self._stopping.wait(_PAUSE)
        if failed := self._failed(problem):
            return self._park(failed, error)
        if is_data_exception(texts):
            if self._search is not None:
                return self._learn(self._search, failed=True)
            suspects = [name for name in self._suspects if not self._stands(name)]
            if suspects and any(self._on_error[name] == "suspend" for name in suspects):
                return self._look_for_culprit(Search(suspects, error))
        self.error = self._diagnosis(error)
        return False

    def _failed(self, problem: BaseException) -> list[str]:
        """The queries whose operators or expressions failed, if the error names them; a sink's error is another matter."""
        return [] if isinstance(problem, SashError) and problem.query is not None else failed_queries(problem)

    def _learn(self, search: Search, *, failed: bool) -> bool:
        search.learn(failed=failed)
        return self._look_for_culprit(search)

    def _look_for_culprit(self, search: Search) -> bool:
        self._search = None if search.culprit is not None else search
        return self._search is not None or self._park((search.culprit or "",), search.error)

    def _park(self, queries: Sequence[str], error: SashError) -> bool:
        """Park the queries that failed. The job ends if one of them must not be parked, or if parking it did not help.

        What fails although its operators stand still is an expression above a source.
        """
        reason = one_line(str(error).rpartition(" failed: ")[2] if isinstance(error, StageError) else str(error))
        unevaluated = self._parking.suspended.unevaluated
        hopeless = [name for name in queries if self._on_error.get(name) != "suspend" or name in unevaluated]
        if hopeless or not queries:
            self.error = QueryFailedError(f"query {', '.join(queries)}: {reason}")
            self.error.log, self.error.query = error.log, queries[0] if len(queries) == 1 else None
            return False
        for name in queries:
            if isinstance(error, StageError) and self.batches.resumption.try_otherwise(name):
                continue
            standing = name in self._parking.standing or not isinstance(error, StageError)
            number = self.batches.first + max(0, self.batches.number)
            self._parking.park(name, "expression" if standing else "operator", reason, number)
        return True

    def _stands(self, query: str) -> bool:
        parked = self._parking[query]
        return parked is not None and not parked.resuming


def leg_suspects(plan: PhysicalPlan) -> list[str]:
    """The queries whose legs, which Spark evaluates, have an expression that may fail."""
    failing = {
        number
        for number, leg in enumerate(plan.legs)
        if isinstance(leg, StreamLeg)
        for node in walk(leg.node)
        if (isinstance(node, Filter) and may_fail(node.predicate))
        or (isinstance(node, Project) and any(map(may_fail, node.expressions)))
        or (isinstance(node, Expand) and any(map(may_fail, itertools.chain.from_iterable(node.lists))))
    }
    return [
        output.query
        for output in plan.outputs
        if any(given.leaf.leg in failing for stage in plan.stages_of(output) for given in stage.inputs)
    ]
