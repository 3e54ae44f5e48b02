"""Supervises the queries of a job while they run: logs their batches and states, and notices how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sash.cli.check import OK
from sash.cli.job_log import JobLog, JobName
from sash.script.session import Session

if TYPE_CHECKING:
    from sash.script.backend import QueryHandle
    from sash.spark.handle import StreamingHandle

FAILED = 3
_POLL = 0.25
_PARKED = "parked"


@dataclass(frozen=True)
class _Watched:
    """A streaming query, the name under which it is logged, and its queries if it is a job."""

    label: str
    handle: StreamingHandle
    queries: list[QueryHandle]

    @property
    def names(self) -> list[str]:
        return [query.name for query in self.queries] or [self.label]


@dataclass
class Supervisor:
    """Watches the streaming queries of a session, which may be replaced by another one.

    `attend` is called at every look, to execute commands from outside.
    """

    session: Callable[[], Session]
    log: JobLog
    attend: Callable[[], None] = lambda: None
    _ended: set[str] = field(default_factory=set)
    _states: dict[str, str] = field(default_factory=dict)

    def watch(self, stop: threading.Event, poll: float = _POLL) -> int:
        """Wait until all queries have ended, one has failed, or `stop` is set; return the exit code."""
        while not stop.wait(poll):
            self.attend()
            watched = self._watched()
            if not watched and not self.session().backend.paused:
                return self._code_of_end()
            if not all(self._look(one) for one in watched):
                return FAILED
        self._stop()
        return OK

    def _watched(self) -> list[_Watched]:
        """The streaming queries that have not ended."""
        backend = self.session().backend
        found = [_Watched(JobName(name), job, list(job.queries.values())) for name, job in backend.jobs().items()]
        found += [_Watched(name, query, []) for name, query in backend.separate().items()]
        return [one for one in found if one.label not in self._ended]

    def _look(self, one: _Watched) -> bool:
        """Log what is new about a streaming query; return False if it failed."""
        from sash.spark.errors import to_sash_error

        try:
            self._log_batches(one)
            if one.handle.active:
                return True
            one.handle.await_termination()
            self._log_batches(one, last=True)
        except Exception as problem:  # noqa: BLE001  (any error may have ended it)
            error = to_sash_error(problem)
            only = one.names[0] if len(one.names) == 1 else one.label
            self.log.fail("failed", error, error.query or only)
            return False
        for name in one.names:
            self.log.write("ended", name)
        self._ended.add(one.label)
        return True

    def _log_batches(self, one: _Watched, *, last: bool = False) -> None:
        for query in one.queries:
            self._log_state(query)
            self._log_query(query.name, query, last=last)
        self._log_query(one.label, one.handle, last=last)

    def _log_query(self, name: str, query: StreamingHandle | QueryHandle, *, last: bool) -> None:
        batches = query.drain_progress()
        for progress in batches:
            self.log.add_batch(name, progress)
        for text in query.stream_warnings(batches):
            self.log.write_warning(text, name)
        self.log.write_batch(name, at_once=last)

    def _log_state(self, query: QueryHandle) -> None:
        """Log that the state of a query has changed: it was parked, resumed or completed."""
        state = query.state
        before = self._states.get(query.name, "running")
        self._states[query.name] = state
        if state == before or not query.active:
            return
        if state.startswith(_PARKED):
            self.log.write(state, query.name, level="warning")
        elif before.startswith(_PARKED):
            self.log.write("resumed", query.name)
        else:
            self.log.write(state, query.name)

    def _code_of_end(self) -> int:
        """The exit code after all queries have ended: those that are parked have not written their answers."""
        parked = [name for name, state in self._states.items() if state.startswith(_PARKED)]
        for name in parked:
            self.log.write(f"the job ended while this query was {self._states[name]}", name, level="error")
        return FAILED if parked else OK

    def _stop(self) -> None:
        from sash.spark.errors import to_sash_error

        self.log.write("stopping after the current batch")
        for one in self._watched():
            try:
                one.handle.finish()
                self._log_batches(one, last=True)
                for name in one.names:
                    self.log.write("stopped", name)
            except Exception as problem:  # noqa: BLE001  (a JVM that has ended too fails in many ways)
                error = to_sash_error(problem)
                self.log.fail("Spark ended first; the next run repeats the last batch", error, one.label)
