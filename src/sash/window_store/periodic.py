"""A periodic query: executed again after every m window updates, its answers delivered one after the other.

It falls behind rather than pile up: while an answer waits to be taken, or executions take longer than m updates, the
next one is of the latest state then (paper 2, 2.1: frequencies are wishes, not promises).
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from sash.errors import CancelledError, OverloadedError
from sash.window_store.asking import Execution, Kept, Question
from sash.window_store.scheduling.runner import Runner
from sash.window_store.scheduling.running import Running
from sash.window_store.snapshot import Snapshot, ToSpark, snapshots

POLL = 0.05
"""How often, in seconds, the manifest is looked at for updates of another process."""

Answers = list[Snapshot]


class Periodic:
    """Runs in a thread of its own. Iterate over it for the answers, or give it a callback; a list of queries gives lists.

    `executions` counts those that gave an answer, `refused` those that an overloaded runner would not take.
    """

    def __init__(
        self,
        question: Question,
        runner: Runner,
        every: int,
        isolation: str,
        priority: int,
        explain: str,
        callback: Callable[[Answers], None] | None,
        size: int,
        to_spark: ToSpark | None,
    ) -> None:
        self.explain = explain
        self.executions = self.refused = 0
        self._question, self._runner = question, runner
        self._every, self._isolation, self._priority = every, isolation, priority
        self._callback, self._to_spark = callback, to_spark
        self._kept: Kept | None = None
        self._seen = -1
        self._error: BaseException | None = None
        self._answers: queue.Queue[Answers | None] = queue.Queue(size)
        self._stopped = threading.Event()
        self._due = threading.Condition()
        self._current: Running | None = None
        self._lease = question.live.lease()
        wake = weakref.WeakMethod(self._wake)
        question.live.scheduler.subscribe(lambda: (found := wake()) and found())
        try:
            first = self._submit()
        except BaseException:
            self._lease.release()
            raise
        self._thread = threading.Thread(target=self._run, args=(first,), name="sash-periodic", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Answers]:
        return self

    def __next__(self) -> Answers:
        """The next answer; ends when the query is stopped, raises what ended it otherwise."""
        while True:
            try:
                found = self._answers.get(timeout=POLL)
            except queue.Empty:
                if self._thread.is_alive():
                    continue
                found = None
            if found is not None:
                return found
            if self._error is not None:
                raise self._error
            raise StopIteration

    @property
    def active(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        """What ended it, if that was not `stop`."""
        return self._error

    def stop(self) -> None:
        """End it; an execution that is under way is cancelled."""
        self._stopped.set()
        current = self._current
        if current is not None:
            current.cancel("the periodic query was stopped")
        self._wake()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _run(self, first: tuple[Execution, Running] | None) -> None:
        try:
            execution = first
            while not self._stopped.is_set():
                if execution is not None:
                    self._deliver(*execution)
                self._await_due()
                execution = None if self._stopped.is_set() else self._try_submit()
        except CancelledError as problem:
            if not self._stopped.is_set():
                self._error = problem
        except Exception as problem:  # noqa: BLE001  (whoever takes the answers is told)
            self._error = problem
        finally:
            self._lease.release()
            self._stopped.set()

    def _submit(self) -> tuple[Execution, Running] | None:
        """Begin an execution; None while the window has no sub-window yet."""
        if not self._question.live.manifest.live:
            return None
        execution = Execution(self._question, self._kept)
        return execution, execution.submit(self._runner, self._isolation, self._priority)

    def _try_submit(self) -> tuple[Execution, Running] | None:
        try:
            return self._submit()
        except OverloadedError:
            self.refused += 1
            self._seen = self._question.live.manifest.updates - 1
            return None

    def _deliver(self, execution: Execution, running: Running) -> None:
        self._current = running
        try:
            if self._stopped.is_set():
                running.cancel("the periodic query was stopped")
            answer = running.result()
            outcome = execution.outcome(answer)
            if outcome is None:
                self._kept = None
                return
            self._kept = outcome.kept
            self._seen = outcome.youngest.number
            self._lease.need(max(0, self._seen - self._question.length + 1))
            found = snapshots(execution, answer, outcome, self.explain, self._isolation, time.time(), self._to_spark)
        finally:
            self._current = None
            execution.release()
        self.executions += 1
        if self._callback is not None:
            self._callback(found)
            return
        while not self._stopped.is_set():
            try:
                self._answers.put(found, timeout=POLL)
            except queue.Full:
                continue
            return

    def _await_due(self) -> None:
        with self._due:
            while not self._stopped.is_set() and self._question.live.manifest.updates - 1 < self._seen + self._every:
                self._due.wait(POLL)

    def _wake(self) -> None:
        with self._due:
            self._due.notify_all()
