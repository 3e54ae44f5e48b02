"""A periodic query: executed again after every m window updates.

A slow query skips updates instead of queueing executions: if an execution, or the consumer of its answer, takes longer
than m updates, the next execution is of the latest state (paper 2, 2.1: frequencies are not guaranteed).
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Self

from sash.errors import CancelledError, OptionError, OverloadedError
from sash.window_store.execute import MergedState, SnapshotExecution
from sash.window_store.plan import SnapshotPlan
from sash.window_store.scheduling.runner import Runner
from sash.window_store.snapshot import Snapshot, ToSpark

POLL = 0.05
"""The interval, in seconds, at which the manifest is checked for updates of other processes."""

_STOPPED = "the periodic query was stopped"


class PeriodicQuery:
    """A query that runs in a thread of its own. Iterate over it for the answers, or pass a callback.

    Each answer is a list with one snapshot per query. `executions` counts the answers, and `refused` the executions that
    an overloaded runner refused.
    """

    def __init__(
        self,
        plan: SnapshotPlan,
        runner: Runner,
        callback: Callable[[list[Snapshot]], None] | None = None,
        queue_size: int = 16,
        to_spark: ToSpark | None = None,
        again: Callable[[], SnapshotPlan] | None = None,
    ) -> None:
        self.executions = self.refused = 0
        self._plan, self._runner, self._again = plan, runner, again
        self._every = plan.options.every or 1
        self._callback, self._to_spark = callback, to_spark
        self._state: MergedState | None = None
        self._seen = -1
        self._error: BaseException | None = None
        self._answers: queue.Queue[list[Snapshot]] = queue.Queue(queue_size)
        self._stopped = threading.Event()
        self._due = threading.Condition()
        self._current: SnapshotExecution | None = None
        self._lease = plan.window.lease()
        self._join(plan)
        try:
            first = self._submit()
        except BaseException:
            self._lease.release()
            plan.group.leave(self)
            raise
        self._thread = threading.Thread(target=self._run, args=(first,), name="sash-periodic", daemon=True)
        self._thread.start()

    def _join(self, plan: SnapshotPlan) -> None:
        plan.group.join(self)
        wake = weakref.WeakMethod(self._wake)
        plan.window.scheduler.subscribe(lambda: (found := wake()) and found())

    def check_sub_windows(self, name: str, count: int) -> None:
        """Refuse a number of sub-windows of a window that is too small for this query."""
        if self.active and self._plan.window.layout.name.lower() == name.lower() and self._every >= count:
            raise OptionError(
                f"a periodic query over {name} is executed every {self._every} updates, so the window needs more than "
                f"{self._every} sub-windows, and would have {count}: stop the query, or choose shorter sub-windows"
            )

    def explain(self) -> str:
        """The plan of the query."""
        return self._plan.explain()

    def __iter__(self) -> Iterator[list[Snapshot]]:
        return self

    def __next__(self) -> list[Snapshot]:
        """Wait for the next answer. The iteration ends when the query is stopped; the error of a failed query is raised."""
        while True:
            try:
                return self._answers.get(timeout=POLL)
            except queue.Empty:
                if self._thread.is_alive():
                    continue
            if self._error is not None:
                raise self._error
            raise StopIteration

    @property
    def active(self) -> bool:
        """Whether the query is running."""
        return self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        """The error of a query that failed."""
        return self._error

    def stop(self) -> None:
        """Stop the query. A running execution is cancelled."""
        self._stopped.set()
        current = self._current
        if current is not None:
            current.cancel(_STOPPED)
        self._wake()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, first: SnapshotExecution | None) -> None:
        try:
            execution = first
            while not self._stopped.is_set():
                if execution is not None:
                    self._deliver(execution)
                self._await_due()
                self._follow_set()
                execution = None if self._stopped.is_set() else self._try_submit()
        except CancelledError as problem:
            if not self._stopped.is_set():
                self._error = problem
        except Exception as problem:  # noqa: BLE001  (raised to the consumer of the answers)
            self._error = problem
        finally:
            self._lease.release()
            self._plan.group.leave(self)
            self._stopped.set()

    def _submit(self) -> SnapshotExecution | None:
        """Start an execution; None while the window has no sub-window."""
        if not self._plan.window.manifest.live:
            return None
        return SnapshotExecution(self._plan, self._runner, self._to_spark, self._state, query=self)

    def _try_submit(self) -> SnapshotExecution | None:
        try:
            return self._submit()
        except OverloadedError:
            self.refused += 1
            self._seen = self._plan.window.manifest.updates - 1
            return None

    def _deliver(self, execution: SnapshotExecution) -> None:
        """Wait for an execution, then pass its answer to the callback or the queue."""
        self._current = execution
        try:
            if self._stopped.is_set():
                execution.cancel(_STOPPED)
            found = execution.result()
        finally:
            self._current = None
        self._state = execution.state
        if not found:
            return
        self._seen = found[0].update
        self._lease.keep_from(max(0, self._seen - self._plan.length + 1))
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
            while not self._stopped.is_set() and not self._is_due():
                self._due.wait(POLL)

    def _is_due(self) -> bool:
        window = self._plan.window
        return window.replaced or window.manifest.updates - 1 >= self._seen + self._every

    def _follow_set(self) -> None:
        """Go on with the set of sub-windows, of another length, that has replaced the one so far."""
        if self._again is None or self._stopped.is_set() or not self._plan.window.replaced:
            return
        plan = self._again()
        lease = plan.window.lease()
        self._plan.group.leave(self)
        self._lease.release()
        self._plan, self._lease, self._state, self._seen = plan, lease, None, -1
        self._join(plan)

    def _wake(self) -> None:
        with self._due:
            self._due.notify_all()
