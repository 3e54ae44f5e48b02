"""Runs read transactions: a pool of threads that always does the next read of the query with the highest priority.

Each thread repeats Algorithm 1 from line 13 on, with priorities (end of section 4.1): of the queries with reads left it
takes the one with the highest priority, and among equals the one that arrived first. A query of a higher priority thus
suspends the others between two reads. An aborted query goes to the end of its priority. A query that is aborted too
often fails, so that no query runs forever.

    runner = Runner(parallel=2)
    transaction = runner.submit(scheduler, Request(length=60), read, priority=10)   # read(Read) -> partial result
    committed = transaction.result()                                # committed.partials, committed.commit.as_of

One runner can serve several windows. The threads call `read` concurrently and without locks. An exception in it fails
that query only.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from sash.errors import CancelledError, OverloadedError, QueryTimeoutError, StarvedError
from sash.window_store.scheduling.levels import Isolation, level
from sash.window_store.scheduling.reader import CommittedReads, Read, ReadTransaction, Request
from sash.window_store.scheduling.scheduler import Scheduler

log = logging.getLogger(__name__)

RESTARTS = 100
"""The number of restarts and of reads dropped as stale after which a query fails."""


class Runner:
    """Runs `parallel` reads at a time, for at most `capacity` running and waiting queries. Must be closed."""

    def __init__(
        self,
        parallel: int = 2,
        capacity: int = 100,
        clock: Callable[[], float] = time.monotonic,
        name: str = "reads",
        restarts: int = RESTARTS,
    ) -> None:
        self.capacity = capacity
        self.restarts = restarts
        self._clock = clock
        self._changed = threading.Condition(threading.RLock())
        self._active: list[ReadTransaction] = []
        self._arrivals = itertools.count()
        self._subscribed: weakref.WeakSet[Scheduler] = weakref.WeakSet()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"sash-{name}-{number}", daemon=True)
            for number in range(parallel)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        scheduler: Scheduler,
        request: Request,
        read: Callable[[Read], Any],
        *,
        isolation: str | Isolation | None = None,
        priority: int = 0,
        timeout: float | None = None,
        then: Callable[[ReadTransaction], None] | None = None,
    ) -> ReadTransaction:
        """Queue a query. `then` is called when it has ended, in a runner thread or in the thread that ended it."""
        chosen = level(isolation) if isinstance(isolation, str) else isolation or scheduler.isolation
        with self._changed:
            if self._closed:
                raise CancelledError("the engine was closed: create another one to run queries")
            if len(self._active) >= self.capacity:
                raise OverloadedError(
                    f"{len(self._active)} queries are running or waiting, and no more than {self.capacity} may: "
                    "submit the query later, submit fewer queries, or raise the capacity"
                )
            now = self._clock()
            transaction = ReadTransaction(
                self, scheduler, request, chosen, read, priority, next(self._arrivals), now,
                None if timeout is None else now + timeout,
            )  # fmt: skip
            if then is not None:
                transaction.callbacks.append(then)
            if scheduler not in self._subscribed:
                self._subscribed.add(scheduler)
                scheduler.subscribe(self.wake)
            self._active.append(transaction)
            self._changed.notify_all()
            return transaction

    def wake(self) -> None:
        """Wake the threads, to look for reads and timeouts."""
        with self._changed:
            self._changed.notify_all()

    def cancel(self, transaction: ReadTransaction, reason: str) -> None:
        """End a query with a CancelledError. The results of its running reads are dropped."""
        with self._changed:
            ended = self._end(transaction, CancelledError(reason))
        self._call_back(ended)

    def await_end(self, transaction: ReadTransaction) -> None:
        """Wait until the query has ended or timed out."""
        while True:
            with self._changed:
                late = self._time_out()
                if not late and not transaction.ended:
                    self._changed.wait(self._remaining(transaction.deadline))
            self._call_back(late)
            if transaction.ended:
                return

    def close(self) -> None:
        """Cancel all queries, and end the threads after their current reads."""
        with self._changed:
            self._closed = True
            ended = [
                done
                for transaction in list(self._active)
                for done in self._end(transaction, CancelledError("the engine was closed"))
            ]
            self._changed.notify_all()
        self._call_back(ended)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    # ---- the threads

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            transaction, read = work
            partial, error = None, None
            try:
                partial = transaction.read(read)
            except BaseException as problem:  # noqa: BLE001  (fails this query only)
                error = problem
            with self._changed:
                ended = self._finish(transaction, read, partial, error)
                self._changed.notify_all()
            self._call_back(ended)

    def _next(self) -> tuple[ReadTransaction, Read] | None:
        """Wait for the next read; None when the runner is closed."""
        while True:
            with self._changed:
                ended = self._time_out()
                if not ended:
                    if self._closed:
                        return None
                    work = self._choose(ended)
                    if work is not None:
                        return work
                    if not ended:
                        deadlines = [
                            transaction.deadline for transaction in self._active if transaction.deadline is not None
                        ]
                        self._changed.wait(self._remaining(min(deadlines, default=None)))
            self._call_back(ended)

    def _choose(self, ended: list[ReadTransaction]) -> tuple[ReadTransaction, Read] | None:
        for transaction in sorted(self._active, key=ReadTransaction.rank):
            try:
                if transaction.reader is None:
                    transaction.reader = transaction.scheduler.begin(transaction.request, transaction.isolation)
                    if transaction.reader is None:
                        continue
                    transaction.began = self._clock()
                read = transaction.scheduler.claim(transaction.reader)
            except Exception as problem:  # noqa: BLE001  (an invalid request fails that query only)
                ended += self._end(transaction, problem)
                return None
            if read is not None:
                return transaction, read
            if not transaction.reader.claimed:
                ended += self._commit(transaction)
                if ended:
                    return None
        return None

    def _finish(
        self, transaction: ReadTransaction, read: Read, partial: Any, error: BaseException | None
    ) -> list[ReadTransaction]:
        if transaction.ended or transaction.reader is None:
            return []
        reader = transaction.reader
        counted = transaction.scheduler.finish(reader, read)
        if reader.restarts > transaction.seen_restarts:
            transaction.seen_restarts = reader.restarts
            transaction.arrival = next(self._arrivals)
        elif not counted:
            transaction.dropped += 1
        if transaction.seen_restarts + transaction.dropped > self.restarts:
            return self._end(transaction, _starved(transaction))
        if not counted:
            return []
        if error is not None:
            return self._end(transaction, error)
        transaction.partials[read] = partial
        return self._commit(transaction)

    def _commit(self, transaction: ReadTransaction) -> list[ReadTransaction]:
        reader = transaction.reader
        assert reader is not None
        assert transaction.began is not None
        commit = transaction.scheduler.commit(reader)
        if commit is None:
            return []
        transaction.committed = CommittedReads(
            commit,
            tuple(transaction.partials[read] for read in commit.reads),
            transaction.submitted,
            transaction.began,
            self._clock(),
            reader.restarts,
            reader.rescans,
        )
        return self._end(transaction, None)

    # ---- ends

    def _end(self, transaction: ReadTransaction, error: BaseException | None) -> list[ReadTransaction]:
        """Remove a query. The caller runs its callbacks, without holding the lock."""
        if transaction not in self._active:
            return []
        self._active.remove(transaction)
        transaction.error = error
        transaction.partials = {}
        if transaction.reader is not None:
            transaction.scheduler.abort(transaction.reader)
        self._changed.notify_all()
        return [transaction]

    def _time_out(self) -> list[ReadTransaction]:
        now = self._clock()
        late = [
            transaction
            for transaction in self._active
            if transaction.deadline is not None and now >= transaction.deadline
        ]
        for transaction in late:
            given = (transaction.deadline or now) - transaction.submitted
            self._end(
                transaction,
                QueryTimeoutError(f"no answer within {given:g} s: allow more time, or a lower isolation level"),
            )
        return late

    def _remaining(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(0.0, deadline - self._clock())

    @staticmethod
    def _call_back(ended: list[ReadTransaction]) -> None:
        for transaction in ended:
            for callback in transaction.callbacks:
                try:
                    callback(transaction)
                except Exception:
                    log.exception("a callback of a query failed")


def _starved(transaction: ReadTransaction) -> StarvedError:
    others = "" if transaction.isolation.name == "ttu" else 'use isolation="latest", which restarts least, '
    return StarvedError(
        f"window updates made the query (isolation {transaction.isolation.name}) restart {transaction.seen_restarts} times and "
        f"drop {transaction.dropped} reads: {others}retain replaced sub-windows with retain=1 or more, or keep longer "
        "sub-windows"
    )
