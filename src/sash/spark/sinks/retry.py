"""The retry policy of all sinks: a batch that fails for a temporary reason is written again, with growing pauses.

A batch keeps its number, so a sink that stores numbers applies it once, even if the first try was committed and only the
reply was lost. Errors that a retry cannot cure, such as a wrong password or a missing table, end the query at once.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sash.durations import microseconds
from sash.errors import SinkError, SourceError
from sash.spark.causes import java_causes
from sash.time import SECOND

if TYPE_CHECKING:
    from sash.spark.sinks.batch import Batch, WriteBatch

T = TypeVar("T")
_AT_START = 10.0

_TEMPORARY_ERRNO = frozenset({
    errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.EHOSTUNREACH,
    errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EAGAIN, errno.EBUSY, errno.ESTALE,
})  # fmt: skip
_TEMPORARY_JAVA = (
    "java.net.ConnectException", "java.net.NoRouteToHostException", "java.net.PortUnreachableException",
    "java.net.SocketException", "java.net.SocketTimeoutException", "java.util.concurrent.TimeoutException",
    "org.apache.hadoop.ipc.", "org.apache.hadoop.net.ConnectTimeoutException",
    "org.apache.kafka.common.errors.DisconnectException", "org.apache.kafka.common.errors.NetworkException",
    "org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.NotLeaderOrFollowerException",
    "org.apache.kafka.common.errors.NotEnoughReplicasException", "org.apache.kafka.common.errors.LeaderNotAvailableException",
)  # fmt: skip
"""Classes, or prefixes of classes, of Java exceptions that a retry may cure."""


def is_temporary(problem: BaseException) -> bool:
    """Whether a retry may succeed: the error says so, or it is one of an unreachable or busy system."""
    if isinstance(problem, SinkError | SourceError):
        return problem.transient
    if isinstance(problem, ConnectionError | TimeoutError):
        return True
    if isinstance(problem, OSError):
        return problem.errno in _TEMPORARY_ERRNO
    return any(kind.startswith(_TEMPORARY_JAVA) for kind, _ in java_causes(problem))


@dataclass(frozen=True)
class RetryPolicy:
    """How long to retry, in seconds, and the pauses between two tries: the first, and the longest; each doubles the last."""

    limit: float = 300.0
    first: float = 0.5
    longest: float = 15.0

    @property
    def at_start(self) -> RetryPolicy:
        """The policy while a query is started: somebody is likely to wait for the message."""
        return replace(self, limit=min(self.limit, _AT_START))


RETRY = "retry"
"""The option of a sink, and of a function that writes batches, that sets the limit."""


def retry_policy(limit: object) -> RetryPolicy:
    """The policy with this limit, such as "10 minutes" ("0 seconds": no retries); None is the default."""
    return RetryPolicy() if limit is None else RetryPolicy(microseconds(str(limit), RETRY) / SECOND)


@dataclass
class Retries:
    """Retries the writes of one query's sink, until the policy's limit, or until the query is stopped.

    Or what else may fail for now: `kind` says what it is that `sink` names.
    """

    sink: str
    policy: RetryPolicy = RetryPolicy()
    clock: Callable[[], float] = time.monotonic
    kind: str = "sink"
    _stopped: threading.Event = field(default_factory=threading.Event)

    def writing(self, write: WriteBatch) -> WriteBatch:
        """The function that writes a batch, with retries."""

        def write_retrying(batch: Batch, number: int) -> None:
            self.run(lambda: write(batch, number), f"batch {number}")

        return write_retrying

    def run(self, attempt: Callable[[], T], what: str) -> T:
        """Call the function until it succeeds, and return its result."""
        begun, pause, tries = self.clock(), self.policy.first, 1
        while True:
            try:
                return attempt()
            except Exception as problem:
                waited = self.clock() - begun
                if not is_temporary(problem) or self._stopped.is_set():
                    raise
                if waited + pause > self.policy.limit:
                    raise self._given_up(problem, what, tries, waited) from problem
                self._warn(problem, what, tries, pause)
            if self._stopped.wait(pause):
                raise SinkError(
                    f"sink {self.sink}: {what} was not written before the query was stopped", transient=True
                )
            pause, tries = min(2 * pause, self.policy.longest), tries + 1

    @property
    def stopped(self) -> bool:
        """Whether the query is being stopped."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Do not try again: a write that waits for its next try fails now."""
        self._stopped.set()

    def _given_up(self, problem: Exception, what: str, tries: int, waited: float) -> Exception:
        if tries == 1:
            return problem
        error = SourceError if isinstance(problem, SourceError) else SinkError
        return error(
            f"{_first_line(problem)} (gave up on {what} after {tries} tries in {waited:.0f} s)", transient=True
        )

    def _warn(self, problem: Exception, what: str, tries: int, pause: float) -> None:
        logging.getLogger("sash").warning(
            "%s %s: %s: %s; try %d failed, the next is in %.3g s",
            self.kind, self.sink, what, _first_line(problem), tries, pause,
        )  # fmt: skip


def _first_line(problem: Any) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__
