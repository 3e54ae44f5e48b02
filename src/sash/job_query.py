"""The handles on the queries and kept windows of a running job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sash.display import code, facts, section
from sash.errors import OptionError, SashError
from sash.physical.explain import edge_columns, stage_lines
from sash.planning import Planned
from sash.runtime.analyze import remarks

if TYPE_CHECKING:
    from sash.running_job import RunningJob
    from sash.spark.job_output import JobOutput
    from sash.spark.job_progress import AlikeProgress, QueryProgress
    from sash.spark.parking import Parked
    from sash.window_store.queries import WindowQueries
    from sash.window_store.store.sets import WindowSets


class JobQuery:
    """Observes a query of a job, and lets it go on after it was parked."""

    def __init__(self, job: RunningJob, output: JobOutput) -> None:
        self.job = job
        self._output = output
        started = job.started
        self._planned: Planned = started.planned.planned(output.name)
        self._progress: QueryProgress | AlikeProgress = started.progress.of(output.name)

    def runs(self, planned: Planned) -> bool:
        """Whether the query is this one."""
        return self._planned is planned

    @property
    def name(self) -> str:
        """The name of the query."""
        return self._output.name

    @property
    def id(self) -> str:
        """The id of the job's Spark query."""
        return self.job.id

    @property
    def active(self) -> bool:
        """Whether its job is running; a parked query is active, too."""
        return self.job.active

    @property
    def state(self) -> str:
        """Running; parked, and why; or how its job ended."""
        parked = self._parked
        if parked is not None:
            missing = " (its outbox has net changes only)" if self._output.outbox.netted else ""
            return f"parked since {parked.since}: {parked.reason}{missing}"
        if self.active and not self._output.completion.reached:
            return "running, and not yet complete"
        return self.job.state

    @property
    def parked(self) -> bool:
        """Whether it is parked."""
        return self._parked is not None

    @property
    def _parked(self) -> Parked | None:
        """Why it is parked; if the operators of alike queries stand still, all of them are."""
        found = (self._output.parking[name] for name in (self.name, self._output.runs_as))
        return next((parked for parked in found if parked is not None and not parked.resuming), None)

    def resume(self) -> int:
        """Let a parked query go on, and return the number of batches that its sink got from the outbox.

        If its sink failed, it gets what it has missed; if it fails again, that is raised, and the query stays parked. If its
        operators stood still, they go on in the next batch, with the rows since then; the job starts its Spark query again,
        after the current batch, before this returns. If they fail again on these rows, or the logs have not kept them, the
        query goes on with the rows of its windows, and its sink gets the net difference between the answer that it has and
        the current one. If an expression above a source had failed, rows since then are missing, and the query is complete
        again after its windows. If all that fails, it is parked again.
        """
        parked = self._parked
        if parked is None:
            raise OptionError(f"query {self.name} is not parked")
        if parked.cause == "sink":
            return self._output.resume()
        run = self.job.started.run
        run.batches.resumption.resume(self._output.runs_as)
        run.restart_and_wait()
        return 0

    def progress(self) -> dict[str, Any]:
        """Return numbers about the last batch, and totals since the start under `total_...`, as those of `RunningQuery`.

        `batch_ms` is the duration of the job's batch, and `share` the query's share of the work in it. `state_bytes` counts
        state that queries share for each. `lag_seconds` is how far the watermark was behind the wall clock.
        `backlog_rows` are the rows that the sources of the job, all together, have and it has not read; None where they do not tell.
        """
        self.job.started.run.update()
        outbox = self._output.outbox
        completion = self._output.completion
        resumed = self.job.started.run.batches.resumption.remarks.get(self.name)
        return {
            **self._progress.last(),
            **({"outbox_bytes": outbox.size} if len(outbox) else {}),
            **({} if resumed is None else {"resumed": resumed}),
            **({} if completion.reached else {"complete": False, "complete_from": completion.instant}),
        }

    def drain_progress(self) -> list[dict[str, Any]]:
        """Return the progress of every batch that ended since the last call, at most the last 1,000."""
        self.job.started.run.update()
        return self._progress.drain()

    def stream_warnings(self, batches: list[dict[str, Any]]) -> list[str]:
        """Return nothing: `RunningJob.stream_warnings` warns about the streams of all queries."""
        return []

    def operators(self) -> dict[str, dict[str, int]]:
        """Return the totals of each operator since the start, and its state's size; the stages are those of the job."""
        self.job.started.run.update()
        with self._progress.lock:
            return self._progress.progress.operators()

    def explain(self) -> str:
        """Return the plan of the query alone, then the stages of the job that compute it, with the counts of the run."""
        self.job.started.run.update()
        with self._progress.lock:
            actual = self._progress.progress.actual()
        planned = self.job.started.planned
        plan, added = planned.physical, remarks(planned.physical, actual)
        stages = [line for s in plan.stages_of(planned.output(self.name)) for line in stage_lines(s, plan, added)]
        head = f"In job {self.job.name}, whose stages other queries may share"
        return "\n".join([self._planned.explain(), head, *edge_columns(stages)]) + "\n"

    def exception(self) -> SashError | None:
        """Return the error that ended the job, or None."""
        return self.job.exception()

    def delays(self) -> tuple[int, ...]:
        """Return the histogram of output delays since the start; its edges are `sash.spark.batch_metrics.EDGES`."""
        with self._progress.lock:
            return self._progress.progress.delays

    @property
    def delay_sum(self) -> float:
        """The sum of all output delays since the start, in seconds; a delay of more than a day counts as a day."""
        with self._progress.lock:
            return self._progress.progress.delay_sum

    def __repr__(self) -> str:
        return f"JobQuery({self.name!r}, {self.state})"

    def _repr_html_(self) -> str:
        plain = {name: value for name, value in self.progress().items() if isinstance(value, int | float | str)}
        return section(f"{self.name}: {self.state}", code(self._planned.sql.strip()), facts(plain))


class JobWindow:
    """Observes a window that a job keeps."""

    def __init__(self, job: RunningJob, writer: WindowSets) -> None:
        self.job = job
        self._writer = writer

    @property
    def name(self) -> str:
        """The name of the window."""
        return self._writer.layout.name

    @property
    def active(self) -> bool:
        """Whether its job is running."""
        return self.job.active

    def progress(self) -> dict[str, Any]:
        """What `KeptWindow.progress` tells, the groups of queries that share their scans among it."""
        return {**self._writer.progress(), "query_groups": self._reads.groups(self.name)}

    def facts(self) -> dict[str, Any]:
        """Where the window is, its progress without its rows, and its reads under way in their order."""
        return {"path": str(self._writer.home), "reads": self._reads.reads(self.name)}

    @property
    def _reads(self) -> WindowQueries:
        """The queries over kept windows."""
        return self.job.started.alike.job.engine.windows

    def change_every(self, every: str | int) -> None:
        """Change the length of the sub-windows while the window is kept: `KeptWindow.change_every`."""
        self._writer.change_every(every)
