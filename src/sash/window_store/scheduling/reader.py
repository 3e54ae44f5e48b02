"""A query as the scheduler and the runner see it: its request, its reads, its commit, and its place in the queue.

Updates are numbered from 0. Update j writes *version* j into sub-window `j % n` of the circular array. The state of the
window as of update s consists of the versions s-n+1 .. s (section 2.3). A query over fewer than n sub-windows reads the
youngest ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sash.window_store.scheduling.levels import Isolation

if TYPE_CHECKING:
    from sash.window_store.scheduling.runner import Runner
    from sash.window_store.scheduling.scheduler import Scheduler


@dataclass(frozen=True)
class Request:
    """The versions that a query reads of each state of the window: those of the youngest `length` sub-windows.

    With `since`, the query has its merged state as of that update, and reads only the versions that were added or have
    expired since then (incremental scans, 2.1). If the whole state has expired, the query reads its whole window.
    """

    length: int
    since: int | None = None

    def incremental(self, state: int) -> bool:
        """Whether the query can continue from its merged state as of that update."""
        return self.since is not None and self.since > state - self.length

    def window(self, state: int) -> range:
        """The versions that it reads of its window, as of that update."""
        first = max(0, state - self.length + 1)
        if self.since is not None and self.incremental(state):
            first = max(first, self.since + 1)
        return range(first, state + 1)

    def wanted(self, state: int) -> set[int]:
        """All versions that it reads, as of that update."""
        return {*self.window(state), *self.expired(state)}

    def expired(self, state: int) -> range:
        """The versions that have expired since the merged state, which the query reads to subtract them."""
        if self.since is None or not self.incremental(state):
            return range(0)
        return range(max(0, self.since - self.length + 1), max(0, state - self.length + 1))


@dataclass(frozen=True)
class Read:
    """One sub-window to read: a version, with the rows inserted into it up to the update `as_of`.

    (Only the kept result of a query has such inserts.)
    """

    sub_window: int
    version: int
    as_of: int


@dataclass(frozen=True)
class Passed:
    """Rows that `update` inserted into a version after the query had read it (4.3). The query adds them to that read."""

    version: int
    update: int
    rows: Any


@dataclass(frozen=True)
class Commit:
    """The reads and passed rows that make up the result of a committed query.

    Other reads (stale ones, and those of aborted attempts) must not be used.
    """

    as_of: int
    reads: tuple[Read, ...]
    passed: tuple[Passed, ...]


@dataclass(eq=False)
class Reader:
    """A running query. Only the scheduler changes it."""

    request: Request
    isolation: Isolation
    name: str
    state: int
    #: the versions that no thread has begun to read
    unread: set[int]
    #: the valid reads, by version
    done: dict[int, Read] = field(default_factory=dict)
    #: the reads in progress, by version
    claimed: dict[int, Read] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    running: bool = True
    #: the number of aborts, and of reads that were repeated instead
    restarts: int = 0
    rescans: int = 0
    #: the number of reads that were undone because their results took too much memory
    given_up: int = 0


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
    given_up: int = 0


@dataclass(eq=False)
class ReadTransaction:
    """A query in the runner's queue. The runner owns the fields; others use the methods."""

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

    @property
    def nbytes(self) -> int:
        """Bytes of its partial results."""
        return sum(getattr(partial, "nbytes", 0) for partial in self.partials.values())

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
