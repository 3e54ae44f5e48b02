"""A query handed to the runner: its place in the queue, its reads so far, and in the end its answer or its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sash.window_store.scheduling.isolation import Isolation
from sash.window_store.scheduling.reader import Commit, Read, Reader, Request
from sash.window_store.scheduling.scheduler import Scheduler


@dataclass(frozen=True)
class Answer:
    """What a query read: the partial result of each sub-window in `commit.reads`, in that order.

    Times are the runner's clock's. `submitted` to `committed` is the response time; `began` is the first read.
    """

    commit: Commit
    partials: tuple[Any, ...]
    submitted: float
    began: float
    committed: float
    restarts: int
    rescans: int


class Driver(Protocol):
    """What a running query needs of its runner."""

    def await_end(self, running: Running) -> None:
        """Return when the query has ended."""

    def cancel(self, running: Running, reason: str) -> None:
        """End the query with an error."""


@dataclass(eq=False)
class Running:
    """A submitted query. Its fields belong to the runner; others use the methods."""

    driver: Driver
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
    answer: Answer | None = None
    error: BaseException | None = None
    listeners: list[Callable[[Running], None]] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether there is an answer or an error."""
        return self.answer is not None or self.error is not None

    def place(self) -> tuple[int, int]:
        """Who goes first: the higher priority, then who came first; serial execution knows no priorities."""
        return (-self.priority if self.isolation.suspends else 0, self.arrival)

    def result(self) -> Answer:
        """Wait for the answer; raises what ended the query instead."""
        self.driver.await_end(self)
        if self.error is not None:
            raise self.error
        assert self.answer is not None
        return self.answer

    def cancel(self, reason: str = "the query was cancelled") -> None:
        """End the query; `result` raises a CancelledError. Nothing happens if it has ended already."""
        self.driver.cancel(self, reason)
