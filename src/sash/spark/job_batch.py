"""The batch function of a job: one action computes the batch, then the outputs are written to their sinks in parallel.

The batch's rows are messages: encoded changes of an output, and metrics. Small parts come to the driver in one table. The
parts of an output that has a large one stay in Spark, and its sink gets a DataFrame.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from sash.plan.alike import QUERY
from sash.plan.options import Mode
from sash.sizes import size_text
from sash.spark.batch_metrics import BatchMetrics, combined
from sash.spark.job_history import JobHistory
from sash.spark.job_output import JobOutput
from sash.spark.job_progress import Delivery, JobProgress
from sash.spark.ledger import Ledger
from sash.spark.messages import ANSWER, LARGE, METRICS, OUTPUT
from sash.spark.parking import Parking
from sash.spark.rejected import BadRowLimit
from sash.spark.resumption import Resumption, ShardAnswer
from sash.spark.sinks.batch import Batch, NetEffect, Unpack, split_answers, typed_schema, whole_effect
from sash.spark.sinks.start import WriteFailure
from sash.spark.sql_types import arrow_struct, from_arrow, spark_struct, to_arrow

_MOST_THREADS = 16


class TrialPassedError(Exception):
    """A batch that was only tried has not failed. It is not committed."""


class JobEndsError(Exception):
    """The job ends before this batch: nothing of it has been computed, and no sink has got anything."""


@dataclass
class JobMessages:
    """The messages of a batch: the small parts of each output, the outputs that have large parts, and the metrics."""

    blobs: dict[int, list[pa.Buffer]] = field(default_factory=dict)
    large: set[int] = field(default_factory=set)
    metrics: list[BatchMetrics] = field(default_factory=list)
    answers: list[ShardAnswer] = field(default_factory=list)

    @staticmethod
    def of(table: pa.Table) -> JobMessages:
        """Read the messages, in an order that does not depend on the shuffle."""
        found = JobMessages()
        ordered = table.sort_by([("output", "ascending"), ("sender", "ascending"), ("seq", "ascending")])
        columns = [ordered.column(name) for name in ("channel", "output", "kind", "metrics", "blob")]
        sent: dict[tuple[int, int, int], ShardAnswer] = {}
        for row, (channel, output, kind, metrics, blob) in enumerate(zip(*columns, strict=True)):
            if channel.as_py() == METRICS:
                found.metrics.append(BatchMetrics(**json.loads(metrics.as_py())))
            elif channel.as_py() == ANSWER:
                sender, clock = ordered["sender"][row].as_py(), ordered["clock"][row].as_py()
                what = output.as_py(), sender, kind.as_py()
                one = sent.setdefault(what, ShardAnswer(*what, clock, metrics.as_py(), []))
                one.blobs += [blob.as_buffer()] if blob.is_valid else []
            elif kind.as_py() == LARGE:
                found.large.add(output.as_py())
            else:
                found.blobs.setdefault(output.as_py(), []).append(blob.as_buffer())
        found.answers = list(sent.values())
        return found


@dataclass
class BatchFunction:
    """Writes the outputs of each batch. With `trial`, batches are computed only, and fail with `TrialPassedError`."""

    outputs: Sequence[JobOutput]
    ledger: Ledger
    progress: JobProgress
    parking: Parking
    resumption: Resumption
    failure: WriteFailure
    most_state: Mapping[str, int]
    """The queries with MAX STATE, and its bytes."""
    on_committed: Callable[[], None] = lambda: None
    """Called once, when a batch of this run has been committed."""
    first: int = 0
    """The number that sinks get for Spark's batch 0."""
    before_batch: Callable[[int], None] = lambda _: None
    """Called with the number of a batch before it is computed."""
    on_parked: Callable[[], None] = lambda: None
    """Called when the operators of a query must stop."""
    history: JobHistory | None = None
    trial: bool = False
    ends: bool = False
    """Whether no further batch begins: the next one fails with `JobEndsError`, and is `refused`."""
    refused: int | None = None
    number: int = -1
    """The number of the batch that is being processed."""
    rejected: Sequence[JobOutput] = ()
    """The outputs of rows that are dropped. Their sinks come first: they tell why the job fails on too many of them."""
    limits: Mapping[str, BadRowLimit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        threads = max(1, min(_MOST_THREADS, len(self.outputs)))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sash-sink")
        self._committed = False

    def close(self) -> None:
        """End the threads, and let sinks that wait for their next try give up."""
        for output in self.outputs:
            output.retries.stop()
        self._pool.shutdown(wait=False)

    def __call__(self, frame: DataFrame, number: int) -> None:
        self.failure.problem = None
        if 0 <= self.number < number and not self._committed:
            self._committed = True
            self.on_committed()
        if self.ends:
            self.refused, self.failure.problem = number, JobEndsError()
            raise self.failure.problem
        self.number = number
        self.before_batch(number)
        if not self.trial:
            self.resumption.begin(self.first + number)
        persisted = frame.persist()
        try:
            small = f"CASE WHEN kind <> {LARGE} OR channel <> {OUTPUT} THEN blob END AS blob"
            columns = ("channel", "output", "kind", "sender", "seq", "clock", "metrics")
            messages = JobMessages.of(persisted.selectExpr(*columns, small).toArrow())
            self._write(persisted, messages, number)
        except BaseException as problem:
            self.failure.problem = problem
            raise
        finally:
            if self.history is not None and not self.trial:
                self.history.end(self.first + number)
            persisted.unpersist()

    def _write(self, persisted: DataFrame, messages: JobMessages, number: int) -> None:
        if self.trial:
            raise TrialPassedError
        done, total = self.ledger.begin(self.first + number), combined(messages.metrics)
        writing: dict[str, Future[Delivery]] = {}
        outputs = self.outputs
        if self.history is not None:
            self.history.begin(self.first + number)
        self.resumption.take(messages.answers, messages.blobs, self.first + number)
        for output, batch in self._batches(self.rejected, persisted, messages):
            if output.name not in done and batch.rows:
                self._put(output, batch, self.first + number)
        for limit in self.limits.values():
            limit.check(total)
        repeated = set()
        for output, batch in self._batches(outputs, persisted, messages):
            batch.clock = total.outputs.get(str(output.position), {}).get("clock")
            if output.name not in done:
                writing[output.name] = self._pool.submit(self._put, output, batch, self.first + number)
            elif self.history is not None:
                repeated.add(output.name)
                output.repeat(batch, self.first + number)
        if self.history is not None:
            for output in outputs:
                if output.number is not None and output.name not in writing and output.name not in repeated:
                    clock = total.outputs.get(str(output.position), {}).get("clock")
                    self.history.advance(output.name, self.first + number, clock)
        # Every sink finishes before the batch fails: then the ledger has all that need not be repeated.
        problems = [problem for one in writing.values() if (problem := one.exception()) is not None]
        if problems:
            raise problems[0]
        written = {name: one.result() for name, one in writing.items()}
        self.progress.record(number, total, messages.metrics, written, {o.name: o.runs_as for o in outputs})
        self._limit_state(total, number)

    @staticmethod
    def _batches(
        outputs: Sequence[JobOutput], persisted: DataFrame, messages: JobMessages
    ) -> Iterator[tuple[JobOutput, Batch]]:
        """The batch of every output. The changes of alike queries are split by query; those without changes are left out."""
        answers: dict[int, dict[int, pa.Table]] = {}
        for output in outputs:
            if output.number is None:
                yield output, _batch_of(output, persisted, messages)
                continue
            if output.position not in answers:
                answers[output.position] = _answers_of(output, persisted, messages)
            table = answers[output.position].get(output.number)
            if table is not None or not output.idle:
                empty = Unpack(output.spec.schema, output.spec.time).table(())
                yield output, output.to_batch(empty if table is None else table)

    def _put(self, output: JobOutput, batch: Batch, number: int) -> Delivery:
        begun = time.monotonic()
        output.put(batch, number)
        self.ledger.commit(output.name)
        return Delivery(batch.rows, time.monotonic() - begun)

    def _limit_state(self, total: BatchMetrics, number: int) -> None:
        held = self.progress.state_bytes(total) if self.most_state else {}
        over = [name for name, most in self.most_state.items() if held[name] > most and self._runs(name)]
        for name in over:
            most = size_text(self.most_state[name])
            self.parking.park(
                name, "state", f"its state of {size_text(held[name])} exceeds MAX STATE {most}", self.first + number + 1
            )
        if over or self.resumption.over_bound(total):
            self.on_parked()

    def _runs(self, query: str) -> bool:
        parked = self.parking[query]
        return parked is None or bool(parked.resuming)


def _batch_of(output: JobOutput, persisted: DataFrame, messages: JobMessages) -> Batch:
    """The batch of one output, from its parts on the driver, or from all of its parts in Spark."""
    spec, spark = output.spec, persisted.sparkSession
    unpack = Unpack(spec.schema, spec.time)
    if output.position not in messages.large:
        return Batch.of_table(unpack.table(messages.blobs.get(output.position, ())), spec.schema, spec.time, spark)
    packed = persisted.where(f"channel = {OUTPUT} AND output = {output.position}").select("blob")
    schema = spark_struct(typed_schema(spec.schema, spec.time))
    frame = from_arrow(packed.mapInArrow(unpack, arrow_struct(schema)), schema)

    def net_effect(mode: Mode, key: tuple[int, ...] | None, most: int) -> pa.Table | None:
        rows = packed.mapInArrow(NetEffect(unpack, mode, key, most), arrow_struct(schema))
        return whole_effect(to_arrow(from_arrow(rows, schema)))

    return Batch(frame.count(), False, lambda: to_arrow(frame), lambda: frame, spark, net_effect)


def _answers_of(output: JobOutput, persisted: DataFrame, messages: JobMessages) -> dict[int, pa.Table]:
    """The changes of alike queries by number; large parts come to the driver, too, to be split there."""
    spec, blobs = output.spec, messages.blobs.get(output.position, [])
    if output.position in messages.large:
        packed = persisted.where(f"channel = {OUTPUT} AND output = {output.position}").select("blob").toArrow()
        blobs = [blob.as_buffer() for blob in packed.column("blob")]
    return split_answers(Unpack((QUERY, *spec.schema), spec.time).table(blobs))
