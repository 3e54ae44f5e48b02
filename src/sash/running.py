"""The handle on a running query, returned by `Query.start`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sash.display import code, facts, section
from sash.errors import OptionError
from sash.plan.statistics import Statistics
from sash.planning import Planned
from sash.spark.handle import Diagnosis, StreamingHandle

if TYPE_CHECKING:
    from sash.spark.progress import ProgressTracker
    from sash.spark.query_history import QueryHistory
    from sash.spark.sinks.retry import Retries
    from sash.spark.sinks.start import WriteFailure
    from sash.spark.sources.refresh import TableRefresh
    from sash.spark.stream_watch import StreamWatch
    from sash.spark.temporary import TemporaryFolder


class RunningQuery(StreamingHandle):
    """Observes and stops a query; made by `Query.start`."""

    def __init__(
        self,
        name: str | None,
        planned: Planned,
        tracker: ProgressTracker,
        tables: Mapping[str, TableRefresh],
        watch: StreamWatch,
        retries: Retries | None = None,
        failure: WriteFailure | None = None,
        diagnosis: Diagnosis | None = None,
        temporary: TemporaryFolder | None = None,
        history: QueryHistory | None = None,
    ) -> None:
        super().__init__(tracker.query, retries, failure, diagnosis)
        self._name = name or f"query-{self.id[:8]}"
        self._planned = planned
        self._tracker = tracker
        self._tables = tables
        self._watch = watch
        self._temporary = temporary
        self.history = history
        """What keeps its recent changes, if anything does."""
        if temporary is not None:
            temporary.before_exit = super().stop

    @property
    def name(self) -> str:
        """The name that was given to `Query.start`, or one made from the id."""
        return self._name

    @property
    def planned(self) -> Planned:
        """Its text and its plan."""
        return self._planned

    def refresh(self) -> int:
        """Read the relations that have a refresh interval now, and return the number of updates found."""
        return sum(table.refresh() for table in self._tables.values())

    def stop(self) -> None:
        """Stop the query; its checkpoint stays, unless it is a temporary one."""
        for table in self._tables.values():
            table.stop()
        super().stop()
        if self.history is not None:
            self._tracker.update()
            self.history.close()
        if self._temporary is not None:
            self._temporary.remove()

    def progress(self) -> dict[str, Any]:
        """Return numbers about the last batch, and totals since the start under `total_...`.

        They are the batch's number and duration, rows in and out, rates, late and bad rows, the size of the state, the
        output delay, and the counts of every operator. `watermark` is the query's clock: the instant, in microseconds, up to
        which the answer is final.
        """
        with self._tracker.updated() as progress:
            return progress.last()

    def drain_progress(self) -> list[dict[str, Any]]:
        """Return the progress of every batch that ended since the last call, at most the last 1,000."""
        return self._tracker.drain()

    def stream_warnings(self, batches: list[dict[str, Any]]) -> list[str]:
        """Return warnings that are due about streams: no rows for long, or late rows.

        Call it from time to time, with what `drain_progress` has returned since the last call.
        """
        return self._watch.look(batches, time.monotonic(), lambda: bool(self._query.status["isDataAvailable"]))

    def operators(self) -> dict[str, dict[str, int]]:
        """Return each operator's totals since the start (rows in and out, negative ones, expirations) and its state's size."""
        with self._tracker.updated() as progress:
            return progress.operators()

    def explain(self) -> str:
        """Return the plan with the counts of the run (EXPLAIN ANALYZE): rows, rates and expirations beside the estimates.

        Rates are per second of stream time since the end of the first batch.
        """
        with self._tracker.updated() as progress:
            actual = progress.actual()
        return self._planned.explain(actual=actual)

    def statistics(self) -> Mapping[str, Statistics]:
        """Return the observed statistics of every stream, by name: rates, numbers of values, frequent values.

        Give them to `Engine.stream(..., statistics=...)` to plan later queries by them. The query must have been started
        with `observe=True`.
        """
        return self._tracker.statistics()

    def __repr__(self) -> str:
        return f"RunningQuery({self.name!r}, {self.state})"

    def _repr_html_(self) -> str:
        progress: dict[str, Any] = {}
        with suppress(OptionError):  # a session of Spark Connect has none
            progress = {name: value for name, value in self.progress().items() if isinstance(value, int | float | str)}
        return section(f"{self.name}: {self.state}", code(self._planned.sql.strip()), facts(progress))

    @property
    def state(self) -> str:
        """Whether it is running, was stopped, or failed and why."""
        if self.active:
            return "running"
        problem = self.exception()
        return "stopped" if problem is None else f"failed: {problem}"

    def delays(self) -> tuple[int, ...]:
        """Return the histogram of output delays since the start; its edges are `sash.spark.batch_metrics.EDGES`."""
        with self._tracker.updated() as progress:
            return progress.delays

    @property
    def delay_sum(self) -> float:
        """The sum of all output delays since the start, in seconds; a delay of more than a day counts as a day."""
        return self._tracker.delay_sum
