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
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from sash.errors import CancelledError, OverloadedError, QueryTimeoutError, StarvedError
from sash.window_store.scheduling.levels import Isolation, level
from sash.window_store.scheduling.reader import CommittedReads, Read, ReadTransaction, Request
from sash.window_store.scheduling.scheduler import Scheduler

RESTARTS = 100
"""The number of restarts and of reads dropped as stale after which a query fails."""


class Runner:
    """Runs `parallel` reads at a time, for at most `capacity` running and waiting queries. Must be closed.

    Queries that wait for others have partial results of at most `memory` bytes in all; None does not limit them.
    """

    def __init__(
        self,
        parallel: int = 2,
        capacity: int = 100,
        clock: Callable[[], float] = time.monotonic,
        restarts: int = RESTARTS,
        memory: int | None = None,
    ) -> None:
        self.capacity = capacity
        self.memory = memory
        self.restarts = restarts
        self._clock = clock
        self._changed = threading.Condition(threading.RLock())
        self._active: list[ReadTransaction] = []
        self._arrivals = itertools.count()
        self._subscribed: weakref.WeakSet[Scheduler] = weakref.WeakSet()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, name=f"sash-reads-{number}", daemon=True) for number in range(parallel)
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
    ) -> ReadTransaction:
        """Queue a query."""
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
            if scheduler not in self._subscribed:
                self._subscribed.add(scheduler)
                scheduler.subscribe(self.wake)
            self._active.append(transaction)
            self._changed.notify_all()
            return transaction

    def reads(self, scheduler: Scheduler) -> list[dict[str, Any]]:
        """The queries of a window that run or wait, in their order: the first one reads next."""
        with self._changed:
            active = sorted(self._active, key=ReadTransaction.rank)
            first = next(iter(active), None)
            return [
                {
                    "id": one.arrival,
                    "isolation": one.isolation.name,
                    "priority": one.priority,
                    "state": "waiting" if one.reader is None else "reading",
                    "waits_for": None if one is first or first is None else first.arrival,
                    "read": len(one.partials),
                    "of": one.request.length,
                    "seconds": round(self._clock() - one.submitted, 3),
                    "restarts": one.seen_restarts,
                    "versions": None if one.reader is None else scheduler.reached(one.reader),
                }
                for one in active
                if one.scheduler is scheduler
            ]

    def wake(self) -> None:
        """Wake the threads, to look for reads and timeouts."""
        with self._changed:
            self._changed.notify_all()

    def cancel(self, transaction: ReadTransaction, reason: str) -> None:
        """End a query with a CancelledError. The results of its running reads are dropped."""
        with self._changed:
            self._end(transaction, CancelledError(reason))

    def await_end(self, transaction: ReadTransaction) -> None:
        """Wait until the query has ended or timed out."""
        with self._changed:
            self._time_out()
            while not transaction.ended:
                self._changed.wait(self._remaining(transaction.deadline))
                self._time_out()

    def close(self) -> None:
        """Cancel all queries, and end the threads after their current reads."""
        with self._changed:
            self._closed = True
            for transaction in list(self._active):
                self._end(transaction, CancelledError("the engine was closed"))
            self._changed.notify_all()
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
                self._finish(transaction, read, partial, error)
                self._changed.notify_all()

    def _next(self) -> tuple[ReadTransaction, Read] | None:
        """Wait for the next read; None when the runner is closed."""
        with self._changed:
            while not self._closed:
                self._time_out()
                active = list(self._active)
                work = self._choose()
                if work is not None:
                    return work
                if self._active == active:  # the end of a query may have unblocked another one
                    deadlines = [one.deadline for one in self._active if one.deadline is not None]
                    self._changed.wait(self._remaining(min(deadlines, default=None)))
        return None

    def _choose(self) -> tuple[ReadTransaction, Read] | None:
        """The next read of the first query that has one; None if there is none, or a query has ended."""
        for transaction in sorted(self._active, key=ReadTransaction.rank):
            try:
                if transaction.reader is None:
                    transaction.reader = transaction.scheduler.begin(transaction.request, transaction.isolation)
                    if transaction.reader is None:
                        continue
                    transaction.began = self._clock()
                read = transaction.scheduler.claim(transaction.reader)
            except Exception as problem:  # noqa: BLE001  (an invalid request fails that query only)
                self._end(transaction, problem)
                return None
            if read is not None:
                return transaction, read
            if not transaction.reader.claimed:
                self._commit(transaction)
                if transaction.ended:
                    return None
        return None

    def _finish(self, transaction: ReadTransaction, read: Read, partial: Any, error: BaseException | None) -> None:
        if transaction.ended or transaction.reader is None:
            return
        reader = transaction.reader
        counted = transaction.scheduler.finish(reader, read)
        if reader.restarts > transaction.seen_restarts:
            transaction.seen_restarts = reader.restarts
            transaction.arrival = next(self._arrivals)
        elif not counted:
            transaction.dropped += 1
        if transaction.seen_restarts + transaction.dropped > self.restarts:
            self._end(transaction, _starved(transaction))
        elif counted and error is not None:
            self._end(transaction, error)
        elif counted:
            transaction.partials[read] = partial
            self._commit(transaction)
            self._limit_suspended()

    def _commit(self, transaction: ReadTransaction) -> None:
        reader = transaction.reader
        assert reader is not None
        assert transaction.began is not None
        commit = transaction.scheduler.commit(reader)
        if commit is None:
            return
        partials = tuple(transaction.partials[read] for read in commit.reads)
        times = transaction.submitted, transaction.began, self._clock()
        transaction.committed = CommittedReads(
            commit, partials, *times, reader.restarts, reader.rescans, reader.given_up
        )
        self._end(transaction, None)

    def _limit_suspended(self) -> None:
        """Let the queries that come last give up their partial results, where those of all that wait are too large."""
        if self.memory is None or len(self._active) < 2:
            return
        _, *waiting = sorted(self._active, key=ReadTransaction.rank)
        sizes = [transaction.nbytes for transaction in waiting]
        while waiting and sum(sizes) > self.memory:
            transaction = waiting.pop()
            sizes.pop()
            if transaction.reader is not None:
                for read in transaction.scheduler.give_up(transaction.reader):
                    transaction.partials.pop(read, None)

    # ---- ends

    def _end(self, transaction: ReadTransaction, error: BaseException | None) -> None:
        if transaction not in self._active:
            return
        self._active.remove(transaction)
        transaction.error = error
        transaction.partials = {}
        if transaction.reader is not None:
            transaction.scheduler.abort(transaction.reader)
        self._changed.notify_all()

    def _time_out(self) -> None:
        now = self._clock()
        for transaction in list(self._active):
            if transaction.deadline is not None and now >= transaction.deadline:
                given = transaction.deadline - transaction.submitted
                message = f"no answer within {given:g} s: allow more time, or a lower isolation level"
                self._end(transaction, QueryTimeoutError(message))

    def _remaining(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(0.0, deadline - self._clock())


def _starved(transaction: ReadTransaction) -> StarvedError:
    others = "" if transaction.isolation.name == "ttu" else 'use isolation="latest", which restarts least, '
    return StarvedError(
        f"window updates made the query (isolation {transaction.isolation.name}) restart {transaction.seen_restarts} times and "
        f"drop {transaction.dropped} reads: {others}retain replaced sub-windows with retain=1 or more, or keep longer "
        "sub-windows"
    )
