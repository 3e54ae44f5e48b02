"""The handles on a running job and on its queries, returned by `Job.start`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sash.display import code, facts, section
from sash.errors import OptionError, SashError
from sash.physical.channels import needs_snapshots
from sash.physical.explain import edge_columns, stage_lines
from sash.plan.statistics import Statistics
from sash.planning import Planned
from sash.runtime.analyze import remarks
from sash.spark.handle import StreamingHandle
from sash.spark.uncommitted import forget_batch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from sash.change.diff import JobDiff
    from sash.job import Job, JobMember
    from sash.query import Query
    from sash.spark.job_output import JobOutput
    from sash.spark.job_progress import AlikeProgress, QueryProgress
    from sash.spark.job_start import StartedJob
    from sash.spark.parking import Parked
    from sash.window_store.store.sets import WindowSets


class RunningJob(StreamingHandle):
    """Observes and stops a job. `queries` has a handle on each of its queries, and `windows` on each window that it keeps."""

    def __init__(self, started: StartedJob) -> None:
        self._take(started)

    def _take(self, started: StartedJob) -> None:
        """Observe a job that has been started."""
        super().__init__(started.run.query)
        self._started = started
        self._run = started.run
        kept = started.windows
        self.queries = {name: JobQuery(self, output) for name, output in started.outputs.items() if name not in kept}
        self.windows = {writer.layout.name: JobWindow(self, writer) for writer in kept.values()}
        started.run.on_end = self._release
        if not started.run.active:
            self._release()
        if started.temporary is not None:
            started.temporary.before_exit = self._run.stop

    @property
    def name(self) -> str:
        """The name of the job."""
        return self._started.name

    @property
    def query(self) -> StreamingQuery:
        """Spark's own handle; another one after the job has started its Spark query again."""
        return self._run.query

    @property
    def id(self) -> str:
        """The id of the Spark query, which the checkpoint keeps over restarts."""
        return str(self._run.query.id)

    @property
    def active(self) -> bool:
        """Whether the job is running."""
        return self._run.active

    @property
    def started(self) -> StartedJob:
        """The parts of the job: its plan, outputs and checkpoint."""
        return self._started

    def add(self, name: str, query: str | Query, *args: Any, **options: Any) -> JobQuery:
        """Add a query; the arguments are those of `Job.add`.

        If it differs from alike queries of the job in constants only, nothing is stopped: it takes effect with the next
        batch that begins, and is complete at once. Otherwise the job stops after its current batch and goes on with the
        query, as by `change`; that needs a checkpoint that is not temporary.
        """
        alike = self._started.alike
        member = alike.job.member(name, query, *args, **options)
        if alike.fits(member):
            alike.add(member)
            self._show_queries()
        else:
            self._change_members({**alike.job.members, name.lower(): member}, f"query {name} cannot be added")
        return self.queries[member.name]

    def remove(self, name: str) -> None:
        """Remove a query; its sink keeps what it has.

        If it is one of alike queries, the others go on without a pause. Otherwise the job stops after its current batch and
        goes on without it, as by `change`; that needs a checkpoint that is not temporary.
        """
        alike = self._started.alike
        if alike.has(name):
            alike.remove(name)
            self._show_queries()
            return
        rest = {known: member for known, member in alike.job.members.items() if known != name.lower()}
        if len(rest) == len(alike.job.members):
            raise OptionError(f"the job has no query {name}; it has {', '.join(self.queries)}")
        if not rest:
            raise OptionError(f"query {name} is the only one of the job: stop the job instead")
        self._change_members(rest, f"query {name} cannot be removed")

    def _change_members(self, members: Mapping[str, JobMember], problem: str) -> None:
        """Stop the job, and go on with these queries."""
        from sash.spark.job_start import JobStart

        if self._started.temporary is not None:
            raise OptionError(
                f"{problem} while the job runs: it is not one of alike queries that differ in constants only, so the job must "
                "be changed, and its checkpoint is temporary. Start the job with a checkpoint"
            )
        job = self._on_this_checkpoint(self._started.alike.job)
        job.members = dict(members)
        job.planned()
        self.finish()
        self._take(JobStart(job, self._started.observation is not None, "apply").run())
        job.engine.register_job(self)

    def _show_queries(self) -> None:
        """Have a handle on every query that runs now."""
        planned, kept = self._started.planned, self._started.windows
        self.queries = {
            name: known
            if (known := self.queries.get(name)) is not None and known.runs(planned.planned(name))
            else JobQuery(self, output)
            for name, output in self._started.outputs.items()
            if name not in kept
        }

    def progress(self) -> dict[str, Any]:
        """Return numbers about the last batch of all queries together, and totals since the start under `total_...`."""
        self._run.update()
        return self._started.progress.whole.last()

    def drain_progress(self) -> list[dict[str, Any]]:
        """Return the progress of every batch that ended since the last call, at most the last 1,000."""
        self._run.update()
        return self._started.progress.whole.drain()

    def stream_warnings(self, batches: list[dict[str, Any]]) -> list[str]:
        """Return warnings that are due about the streams of all queries, given what `drain_progress` has returned."""
        return self._started.watch.look(batches, time.monotonic(), lambda: bool(self.query.status["isDataAvailable"]))

    def statistics(self) -> Mapping[str, Statistics]:
        """Return the observed statistics of every stream; the job must have been started with `observe=True`."""
        found = self._started.observation
        if found is None:
            raise OptionError("the streams of this job are not observed: start it with observe=True")
        found.take(self.query.recentProgress)
        return found.statistics()

    def explain(self) -> str:
        """Return the plan of the job: what its queries share, and what that saves."""
        return self._started.planned.explain()

    def refresh(self) -> int:
        """Read the relations that have a refresh interval now, and return the number of updates found."""
        return sum(table.refresh() for table in self._started.tables.values())

    def exception(self) -> SashError | None:
        """Return the error that ended the job, or None."""
        return self._run.error

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the job ends by itself; return False if `timeout` seconds pass first. Raise the error that ended it."""
        ended = self._run.wait(timeout)
        if ended and self._run.error is not None:
            raise self._run.error
        return ended

    def process_all_available(self) -> None:
        """Wait until all rows that are in the sources now have been processed. Raise the error that ended the job, if one did."""
        self._run.process_all_available()
        if self._run.error is not None:
            raise self._run.error

    process_all = process_all_available

    def diff(self, job: Job) -> JobDiff:
        """Compare another definition of the job with the running one: what `change` would keep, derive and begin anew."""
        return self._on_this_checkpoint(job).diff()

    def change(self, job: Job) -> RunningJob:
        """Stop this job after its current batch, change its checkpoint, and start the other definition from it.

        Nothing stops if the other job cannot be planned, if a query of it cannot be backfilled or needs an answer that
        cannot be read, or if it differs only in alike queries; then this handle is returned. If the change fails, the checkpoint is as before, and so is what its
        start does.
        """
        from sash.spark.job_start import JobStart

        job = self._on_this_checkpoint(job)
        job.planned()
        if self.active and self._started.alike.follow(job, JobStart(job).manifest()):
            self._show_queries()
            return self
        plan = self._started.planned.physical
        arrays = any(needs_snapshots(plan, stage) for stage in plan.stages)
        if arrays or any(member.backfill for member in job.members.values()):
            job.diff().check()
        self.finish()
        return job.start(on_change="apply")

    def _on_this_checkpoint(self, job: Job) -> Job:
        base, _, name = self._started.root.rpartition("/")
        return job.on_checkpoint(base, name)

    def pause(self) -> None:
        """Stop reading the sources after the current batch. The windows stay; `resume` goes on from there.

        Meanwhile nothing is computed, nor does time pass for the queries: rows expire when the job goes on.
        """
        self._run.pause()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._run.resume()

    @property
    def paused(self) -> bool:
        """Whether the job has been paused."""
        return self._run.paused

    def stop(self) -> None:
        """Stop the job; its checkpoint stays, unless it is a temporary one."""
        for table in self._started.tables.values():
            table.stop()
        self._run.stop()
        self._release()

    def finish(self, timeout: float = 60) -> None:
        """Stop the job after its current batch, or after `timeout` seconds; the next start repeats an unfinished batch."""
        for output in self._started.outputs.values():
            output.retries.stop()
        self._run.finish(timeout)
        if self._run.batches.refused is not None:
            forget_batch(self._started.folder, self._run.batches.refused)
        self.stop()

    def _release(self) -> None:
        """Give up what the job holds: its checkpoint and its windows."""
        self._started.lock.release()
        self._started.on_stop.close()
        if self._started.temporary is not None:
            self._started.temporary.remove()

    def __repr__(self) -> str:
        return f"RunningJob({self.name!r}, {self.state}, queries: {', '.join(self.queries)})"

    @property
    def state(self) -> str:
        """Whether it is running, paused, was stopped, or failed and why."""
        if self.active:
            return "paused" if self.paused else "running"
        return "stopped" if self._run.error is None else f"failed: {self._run.error}"


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
        """The last batch applied, the window updates so far, the watermark, late rows, and the sub-windows with their rows."""
        return self._writer.progress()

    def facts(self) -> dict[str, Any]:
        """Where the window is, its progress without its rows, and its reads under way in their order."""
        queries = self.job.started.alike.job.engine.windows
        return {"path": str(self._writer.home), "reads": queries.reads(self.name)}

    def change_every(self, every: str | int) -> None:
        """Change the length of the sub-windows while the window is kept: `KeptWindow.change_every`."""
        self._writer.change_every(every)
