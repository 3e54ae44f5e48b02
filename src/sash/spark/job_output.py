"""The output of one query in a job: its changes of each batch go to its sink, or to its outbox while it is parked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from sash.errors import QueryFailedError, SashError, SinkError
from sash.spark.causes import one_line
from sash.spark.completion import Completion
from sash.spark.errors import to_sash_error
from sash.spark.job_history import Record
from sash.spark.outbox import Outbox
from sash.spark.parking import Parking
from sash.spark.sinks.base import OutputSpec, Sink
from sash.spark.sinks.batch import Batch, WriteBatch
from sash.spark.sinks.retry import Retries

OnError = Literal["fail", "suspend"]
"""What happens if a query fails: its job fails, or the query is parked and the job goes on."""


@dataclass
class JobOutput:
    """An output, with its sink opened by `open`; `position` is its place among the outputs of the plan."""

    name: str
    position: int
    spec: OutputSpec
    sink: Sink
    on_error: OnError
    outbox: Outbox
    parking: Parking
    to_batch: Callable[[pa.Table], Batch]
    template: str | None = None
    """The template of alike queries whose output has the changes of this one, under its `number`."""
    number: int | None = None
    retries: Retries = field(init=False)
    lock: threading.Lock = field(default_factory=threading.Lock)
    completion: Completion = field(default_factory=Completion)
    """From when the answer is complete. With WHEN COMPLETE, the outbox keeps the changes until then."""
    record: Record = field(default=lambda _, __: None)
    """Keeps the changes that the sink got for the history of the job."""
    settle: Callable[[], None] = lambda: None
    """Waits, for a bounded time, until the history has them."""
    _write: WriteBatch | None = None

    def __post_init__(self) -> None:
        self.retries = Retries(f"{self.sink.name} of {self.name}", self.sink.policy)

    def open(self) -> None:
        """Open the sink. That of a parked query is opened when the query resumes, because it may still fail."""
        parked = self.parking[self.name]
        if parked is None or parked.cause != "sink":
            self._opened(at_start=True)

    def put(self, batch: Batch, number: int) -> None:
        """Write a batch, or keep it; raise the sink's error if that fails the job."""
        with self.lock:
            parked = self.parking[self.name]
            self.completion.learn(batch.clock)
            away = parked is not None and not parked.resuming
            if away or self._stands() or self.completion.holds:
                self.outbox.add(number, batch.table)
                return
            try:
                if len(self.outbox):
                    self._deliver()
                if batch.rows or self.sink.needs_empty_batches:
                    self.retries.writing(self._opened())(batch, number)
                self.record(batch, number)
            except Exception as problem:
                if self.on_error == "fail" or self.retries.stopped:
                    raise _named(self.name, problem) from problem
                self.outbox.add(number, batch.table)
                self.parking.park(self.name, "sink", _text(problem), number)

    def repeat(self, batch: Batch, number: int) -> None:
        """Keep for the history a batch that the sink got before the process died; what is in the outbox comes later."""
        with self.lock:
            parked = self.parking[self.name]
            if (parked is None or parked.resuming) and not self._stands() and not self.completion.holds:
                self.record(batch, number)

    def _stands(self) -> bool:
        """Whether the operators of all alike queries stand still."""
        parked = self.parking[self.runs_as]
        return parked is not None and parked.stands

    @property
    def idle(self) -> bool:
        """Whether a batch without changes needs nothing to be done."""
        return not self.sink.needs_empty_batches and not len(self.outbox) and not self.completion.holds

    @property
    def runs_as(self) -> str:
        """The name of the output of the plan: its template's, or its own."""
        return self.name if self.template is None else self.template

    def resume(self) -> int:
        """Give the sink what the outbox has, and let the query go on; return the number of batches."""
        with self.lock:
            delivered = self._deliver()
            self.parking.release(self.name)
            return delivered

    def catch_up(self) -> None:
        """Give the sink what a change of the job left in the outbox, unless it waits or is parked."""
        with self.lock:
            if len(self.outbox) and self.parking[self.name] is None and not self.completion.holds:
                try:
                    self._deliver()
                except Exception as problem:
                    if self.on_error == "fail" or self.retries.stopped:
                        raise _named(self.name, problem) from problem
                    self.parking.park(self.name, "sink", _text(problem), 0)

    def _deliver(self) -> int:
        write = self.retries.writing(self._opened())

        def deliver(table: pa.Table, number: int) -> None:
            batch = self.to_batch(table)
            write(batch, number)
            self.record(batch, number)
            self.settle()

        return self.outbox.deliver(deliver)

    def _opened(self, *, at_start: bool = False) -> WriteBatch:
        if self._write is None:
            policy = self.sink.policy.at_start if at_start else self.sink.policy
            opening = Retries(f"{self.sink.name} of {self.name}", policy)
            self._write = opening.run(lambda: self.sink.open(self.spec), "connecting")
        return self._write


def _named(query: str, problem: Exception) -> SashError:
    """The error of a query's sink, with the query's name."""
    error = to_sash_error(problem)
    if isinstance(error, SinkError):
        named: SashError = SinkError(f"query {query}: {error}", transient=error.transient)
    else:
        kind = type(error) if type(error).__init__ is SashError.__init__ else QueryFailedError
        named = kind(f"query {query}: {error}")
    named.log, named.query = error.log, query
    return named


def _text(problem: BaseException) -> str:
    return one_line(str(to_sash_error(problem) if not isinstance(problem, SashError) else problem))
