"""Runs queries through schedulers: a few threads that always do the next read of the most important query.

Each thread repeats line 13 on of Algorithm 1 with priorities (end of section 4.1): of the queries that have a read
left, take the one with the highest priority, and among equals the one that came first. A query of higher priority
thereby suspends the others between two reads, and they resume when it has none left. A query that was aborted goes to
the end of its equals; one that has been aborted too often is given up, so that no query runs for ever.

    runner = Runner(parallel=2)
    running = runner.submit(scheduler, Request(length=60), read, priority=10)   # read(Read) -> partial result
    answer = running.result()                                                  # answer.partials, answer.commit.as_of

One runner may serve several windows. `read` is called without locks, from any of the threads, several at a time; an
exception in it ends that query and no other.
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
from sash.window_store.scheduling.isolation import Isolation
from sash.window_store.scheduling.levels import level
from sash.window_store.scheduling.reader import Read, Request
from sash.window_store.scheduling.running import Answer, Running
from sash.window_store.scheduling.scheduler import Scheduler

log = logging.getLogger(__name__)

RESTARTS = 100
"""How often a query may begin again, or read what is replaced meanwhile, before it is given up."""


class Runner:
    """`parallel` reads at a time; `capacity` queries at most, running and waiting, each with so many `restarts`.

    Close it when done.
    """

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
        self._active: list[Running] = []
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
        then: Callable[[Running], None] | None = None,
    ) -> Running:
        """Queue a query; `then` is called once it has ended, however it ended, in one of our threads or the ender's."""
        chosen = level(isolation) if isinstance(isolation, str) else isolation or scheduler.isolation
        with self._changed:
            if self._closed:
                raise CancelledError("the engine has been stopped: start it again to ask queries")
            if len(self._active) >= self.capacity:
                raise OverloadedError(
                    f"{len(self._active)} queries are running or waiting, and no more than {self.capacity} may: "
                    "ask again later, ask less often, or raise the capacity"
                )
            now = self._clock()
            running = Running(
                self, scheduler, request, chosen, read, priority, next(self._arrivals), now,
                None if timeout is None else now + timeout,
            )  # fmt: skip
            if then is not None:
                running.listeners.append(then)
            if scheduler not in self._subscribed:
                self._subscribed.add(scheduler)
                scheduler.subscribe(self.wake)
            self._active.append(running)
            self._changed.notify_all()
            return running

    def wake(self) -> None:
        """Look again at who may go on and whose time is up."""
        with self._changed:
            self._changed.notify_all()

    def cancel(self, running: Running, reason: str) -> None:
        """End a query with a CancelledError; reads of it that are under way finish for nothing."""
        with self._changed:
            ended = self._end(running, CancelledError(reason))
        self._tell(ended)

    def await_end(self, running: Running) -> None:
        """Return when the query has ended, by itself or because its time is up."""
        while True:
            with self._changed:
                late = self._late()
                if not late and not running.ended:
                    self._changed.wait(self._patience(running.deadline))
            self._tell(late)
            if running.ended:
                return

    def close(self) -> None:
        """Cancel what is left and end the threads, once their reads are done."""
        with self._changed:
            self._closed = True
            ended = [done for running in list(self._active) for done in self._end(running, CancelledError("stopped"))]
            self._changed.notify_all()
        self._tell(ended)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    # ---- the threads

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            running, read = work
            partial, error = None, None
            try:
                partial = running.read(read)
            except BaseException as problem:  # noqa: BLE001  (whatever it is, it is this query's alone)
                error = problem
            with self._changed:
                ended = self._finish(running, read, partial, error)
                self._changed.notify_all()
            self._tell(ended)

    def _next(self) -> tuple[Running, Read] | None:
        """Wait for the next read that is to be done; None when the runner is closed."""
        while True:
            with self._changed:
                ended = self._late()
                if not ended:
                    if self._closed:
                        return None
                    work = self._choose(ended)
                    if work is not None:
                        return work
                    if not ended:
                        deadlines = [running.deadline for running in self._active if running.deadline is not None]
                        self._changed.wait(self._patience(min(deadlines, default=None)))
            self._tell(ended)

    def _choose(self, ended: list[Running]) -> tuple[Running, Read] | None:
        for running in sorted(self._active, key=Running.place):
            try:
                if running.reader is None:
                    running.reader = running.scheduler.begin(running.request, running.isolation)
                    if running.reader is None:
                        continue
                    running.began = self._clock()
                read = running.scheduler.claim(running.reader)
            except Exception as problem:  # noqa: BLE001  (a request that does not fit ends that query alone)
                ended += self._end(running, problem)
                return None
            if read is not None:
                return running, read
            if not running.reader.claimed:
                ended += self._commit(running)
                if ended:
                    return None
        return None

    def _finish(self, running: Running, read: Read, partial: Any, error: BaseException | None) -> list[Running]:
        if running.ended or running.reader is None:
            return []
        reader = running.reader
        counted = running.scheduler.finish(reader, read)
        if reader.restarts > running.seen_restarts:
            running.seen_restarts = reader.restarts
            running.arrival = next(self._arrivals)
        elif not counted:
            running.dropped += 1
        if running.seen_restarts + running.dropped > self.restarts:
            return self._end(running, _starved(running))
        if not counted:
            return []
        if error is not None:
            return self._end(running, error)
        running.partials[read] = partial
        return self._commit(running)

    def _commit(self, running: Running) -> list[Running]:
        reader = running.reader
        assert reader is not None
        assert running.began is not None
        commit = running.scheduler.commit(reader)
        if commit is None:
            return []
        running.answer = Answer(
            commit,
            tuple(running.partials[read] for read in commit.reads),
            running.submitted,
            running.began,
            self._clock(),
            reader.restarts,
            reader.rescans,
        )
        return self._end(running, None)

    # ---- ends

    def _end(self, running: Running, error: BaseException | None) -> list[Running]:
        """Take a query out; whoever calls tells its listeners, after letting go of the lock."""
        if running not in self._active:
            return []
        self._active.remove(running)
        running.error = error
        running.partials = {}
        if running.reader is not None:
            running.scheduler.abort(running.reader)
        self._changed.notify_all()
        return [running]

    def _late(self) -> list[Running]:
        now = self._clock()
        late = [running for running in self._active if running.deadline is not None and now >= running.deadline]
        for running in late:
            given = (running.deadline or now) - running.submitted
            self._end(
                running, QueryTimeoutError(f"no answer within {given:g} s: allow more time, or a lower isolation")
            )
        return late

    def _patience(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(0.0, deadline - self._clock())

    @staticmethod
    def _tell(ended: list[Running]) -> None:
        for running in ended:
            for listener in running.listeners:
                try:
                    listener(running)
                except Exception:
                    log.exception("what follows a query failed")


def _starved(running: Running) -> StarvedError:
    others = "" if running.isolation.name == "ttu" else 'ask with isolation="latest", which reads last what goes next, '
    return StarvedError(
        f"the window moved on under the query (isolation {running.isolation.name}) so often that it began again "
        f"{running.seen_restarts} times, and {running.dropped} reads were too late: {others}keep replaced sub-windows "
        "with retain=1 or more, or keep longer sub-windows"
    )
