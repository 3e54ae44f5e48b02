"""The handle on a running job, returned by `Job.start`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sash.errors import OptionError, SashError
from sash.job_query import JobQuery, JobWindow
from sash.physical.channels import needs_snapshots
from sash.plan.statistics import Statistics
from sash.spark.handle import StreamingHandle
from sash.spark.uncommitted import forget_batch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from sash.change.diff import JobDiff
    from sash.job import Job, JobMember
    from sash.query import Query
    from sash.spark.job_start import StartedJob


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
        job = alike.job.copied()
        job.add(name, query, *args, **options)
        member = job.members[name.lower()]
        if alike.fits(member):
            alike.add(member)
            self._show_queries()
        else:
            self._change_members(job.members, f"query {name} cannot be added")
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
        self._check_change(job)
        self.finish()
        with self._going_on_if_it_fails():
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

        Nothing stops if the other job cannot be planned, if a query of it cannot be backfilled, needs an answer that cannot
        be read or could wait for ever, or if it differs only in alike queries; then this handle is returned. If the change
        fails, this job goes on as it was, and the error is raised.
        """
        from sash.spark.job_start import JobStart

        job = self._on_this_checkpoint(job)
        job.planned()
        if self.active and self._started.alike.follow(job, JobStart(job).manifest()):
            self._show_queries()
            return self
        self._check_change(job)
        self.finish()
        with self._going_on_if_it_fails():
            return job.start(on_change="apply")

    @contextmanager
    def _going_on_if_it_fails(self) -> Iterator[None]:
        """If the change of the job, which has been stopped for it, fails, start the job as it was."""
        from sash.spark.job_start import JobStart

        before, observed = self._on_this_checkpoint(self._started.alike.job), self._started.observation is not None
        try:
            yield
        except Exception as problem:
            log = logging.getLogger("sash")
            try:
                self._take(JobStart(before, observed).run())
            except Exception as other:  # noqa: BLE001  (what made the change fail is raised)
                log.warning("%s: the change failed, and the job cannot go on as it was: %s", self.name, other)
            else:
                before.engine.register_job(self)
                log.warning("%s: the change failed, and the job goes on as it was: %s", self.name, problem)
            raise

    def _check_change(self, job: Job) -> None:
        """Raise an error if the change to a job cannot be applied; where that is possible at all, its state is looked at."""
        plan = self._started.planned.physical
        arrays = any(needs_snapshots(plan, stage) for stage in plan.stages)
        if arrays or any(member.backfill or member.when_complete for member in job.members.values()):
            job.diff().check()

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
