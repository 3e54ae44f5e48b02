"""A query as a read transaction in the runner's queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sash.window_store.scheduling.levels import Isolation
from sash.window_store.scheduling.reader import Commit, Read, Reader, Request
from sash.window_store.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from sash.window_store.scheduling.runner import Runner


@dataclass(frozen=True)
class CommittedReads:
    """The reads of a committed query: `partials` has the partial result of each sub-window in `commit.reads`, in order.

    Times are by the runner's clock. `began` is the time of the first read; the response time is `committed - submitted`.
    """

    commit: Commit
    partials: tuple[Any, ...]
    submitted: float
    began: float
    committed: float
    restarts: int
    rescans: int


@dataclass(eq=False)
class ReadTransaction:
    """A submitted query. The runner owns the fields; others use the methods."""

    runner: Runner
    scheduler: Scheduler
    request: Request
    isolation: Isolation
    read: Callable[[Read], Any]
    priority: int
    arrival: int
    submitted: float
    deadline: float | None
    reader: Reader | None = None
    began: float | None = None
    seen_restarts: int = 0
    dropped: int = 0
    partials: dict[Read, Any] = field(default_factory=dict)
    committed: CommittedReads | None = None
    error: BaseException | None = None
    callbacks: list[Callable[[ReadTransaction], None]] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether the query has committed or failed."""
        return self.committed is not None or self.error is not None

    def rank(self) -> tuple[int, int]:
        """The sort key of the queue: higher priorities first, then order of arrival. Serial execution has no priorities."""
        return (-self.priority if self.isolation.suspends else 0, self.arrival)

    def result(self) -> CommittedReads:
        """Wait until the query has committed. Raises the error of a query that failed."""
        self.runner.await_end(self)
        if self.error is not None:
            raise self.error
        assert self.committed is not None
        return self.committed

    def cancel(self, reason: str = "the query was cancelled") -> None:
        """Cancel the query: `result` raises a CancelledError. Has no effect on a query that has ended."""
        self.runner.cancel(self, reason)
