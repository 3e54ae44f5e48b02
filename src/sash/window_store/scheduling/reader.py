"""A query as a transaction: what it wants to read, what it has read, and what it was told when it committed.

Updates are numbered from 0; update j writes *version* j, into sub-window `j % n` of the circular array. The state of
the window as of update s is the versions s-n+1 .. s. (Section 2.3; queries over fewer than n sub-windows want the
youngest ones.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sash.window_store.scheduling.isolation import Isolation


@dataclass(frozen=True)
class Request:
    """What a query reads of each state of the window.

    `length` sub-windows, the youngest. With `since`, the query has kept its answer as of that update and reads only
    what has come and what has expired since then (incremental scans, 2.1); if nothing of the kept answer is still in
    the window it reads all of it, as without `since`.
    """

    length: int
    since: int | None = None

    def incremental(self, state: int) -> bool:
        """Whether the kept answer serves as of that update."""
        return self.since is not None and self.since > state - self.length

    def window(self, state: int) -> range:
        """The versions in the query's window that it reads, as of that update."""
        first = max(0, state - self.length + 1)
        if self.since is not None and self.incremental(state):
            first = max(first, self.since + 1)
        return range(first, state + 1)

    def wanted(self, state: int) -> set[int]:
        """All versions that it reads, as of that update."""
        return {*self.window(state), *self.expired(state)}

    def expired(self, state: int) -> range:
        """The versions that have left the query's window since the kept answer, and that it takes off."""
        if self.since is None or not self.incremental(state):
            return range(0)
        return range(max(0, self.since - self.length + 1), max(0, state - self.length + 1))


@dataclass(frozen=True)
class Read:
    """One sub-window to read: the version, with whatever was inserted into it up to the update `as_of`.

    (In a plain window nothing is ever inserted into a written sub-window, and `as_of` may be ignored.)
    """

    sub_window: int
    version: int
    as_of: int


@dataclass(frozen=True)
class Passed:
    """Rows that `update` inserted into a sub-window after the query had read it (4.3): to be added to that read."""

    version: int
    update: int
    rows: Any


@dataclass(frozen=True)
class Commit:
    """What a committed query consists of: the answer is made of these reads and passed rows, and of nothing else.

    Reads that are not listed (stale ones, those of an aborted attempt) must not be used.
    """

    as_of: int
    reads: tuple[Read, ...]
    passed: tuple[Passed, ...]


@dataclass(eq=False)
class Reader:
    """A running query, as the scheduler sees it. Only the scheduler changes it."""

    request: Request
    isolation: Isolation
    name: str
    state: int
    #: the versions nobody has begun to read
    unread: set[int]
    #: what counts as read, by version
    done: dict[int, Read] = field(default_factory=dict)
    #: reads under way, by version
    claimed: dict[int, Read] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    running: bool = True
    #: how often it was aborted and began again, and how many reads were taken back instead
    restarts: int = 0
    rescans: int = 0
