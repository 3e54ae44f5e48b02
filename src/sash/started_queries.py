"""The queries and jobs that an engine has started: their progress, their metrics, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sash.arguments import check_count, check_text
from sash.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from sash.job_query import JobQuery
    from sash.metrics import MetricsServer
    from sash.running import RunningQuery
    from sash.running_job import RunningJob
    from sash.spark.progress import BatchListener, ProgressTracker


class StartedQueries:
    """Knows what runs on a session, and tells functions and the metrics server of every batch."""

    def __init__(self, spark: SparkSession, query_groups: Callable[[], list[dict[str, Any]]]) -> None:
        self._spark = spark
        self._query_groups = query_groups
        self._queries: dict[str, tuple[RunningQuery, ProgressTracker]] = {}
        self._jobs: list[RunningJob] = []
        self._callbacks: list[Callable[[str, dict[str, Any]], None]] = []
        self._listener: BatchListener | None = None
        self._server: MetricsServer | None = None

    @property
    def by_name(self) -> dict[str, RunningQuery | JobQuery]:
        """The started queries by name, those of jobs among them; a new query replaces an ended one of the same name."""
        of_jobs = {name: query for job in self._jobs for name, query in job.queries.items()}
        return {**of_jobs, **{name: running for name, (running, _) in self._queries.items()}}

    def add(self, running: RunningQuery, tracker: ProgressTracker) -> None:
        """Take in a query that has been started."""
        self._queries[running.name] = running, tracker
        tracker.subscribe(lambda progress: self._notify(running.name, progress))

    def add_job(self, running: RunningJob) -> None:
        """Take in a job that has been started; jobs that have ended are forgotten."""
        running.started.progress.on_batch = self._notify
        self._jobs = [job for job in self._jobs if job.active and job is not running] + [running]

    def on_batch(self, callback: Callable[[str, dict[str, Any]], None]) -> None:
        """Call a function with a query's name and its progress after every batch that is noticed."""
        self._callbacks.append(callback)

    def listen(self) -> None:
        """Receive every batch from Spark, which forgets batches that are polled too rarely."""
        from sash.spark.connect import refuse_connect
        from sash.spark.progress import BatchListener

        refuse_connect(self._spark, "on_progress() or metrics()")
        if self._listener is None:
            self._listener = BatchListener(self._update_progress)
            self._spark.streams.addListener(self._listener)

    def serve_metrics(self, port: int, host: str) -> str:
        """Serve the metrics of all queries, and return the URL."""
        from sash.metrics import MetricsServer, exposition

        check_count("port", port, least=0, most=65_535)
        check_text("host", host)
        self.listen()
        if self._server is not None:
            raise OptionError(f"the metrics are already served at {self._server.url}")
        try:
            self._server = MetricsServer(lambda: exposition(self.by_name, self._query_groups()), port, host)
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise OptionError(
                f"metrics cannot be served on {host}:{port}: {reason}; choose another port, or 0"
            ) from None
        return self._server.url

    def stop(self) -> None:
        """Stop all queries and jobs."""
        for running in (*(query for query, _ in self._queries.values()), *self._jobs):
            running.stop()
        self._queries.clear()
        self._jobs.clear()

    def close(self) -> None:
        """No longer listen, nor serve metrics."""
        if self._listener is not None:
            self._spark.streams.removeListener(self._listener)
            self._listener = None
        if self._server is not None:
            self._server.close()
            self._server = None

    def _notify(self, query: str, progress: dict[str, Any]) -> None:
        for callback in self._callbacks:
            callback(query, progress)

    def _update_progress(self, query_id: str, reports: Sequence[Any]) -> None:
        for running, tracker in list(self._queries.values()):
            if running.id == query_id:
                tracker.update(reports)
        for job in self._jobs:
            if job.id == query_id:
                job.started.progress.update(reports[-1])
