"""A job as the console shows it: what its process tells on the control socket, and the files of its run folder.

All methods may be called from any thread. The job is asked at most once a second, for all clients together.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sash.console.backlog import FileBacklog, file_streams
from sash.console.kept import KeptHistory
from sash.console.plan_figures import with_figures
from sash.console.previews import Preview
from sash.console.scripts import ScriptCheck
from sash.console.store_windows import StoreWindows
from sash.control import request
from sash.errors import ControlError
from sash.job_index import JobEntry
from sash.script.reader import read_script
from sash.script.statements import CreateQuery, CreateStream
from sash.time import SECOND

Values = dict[str, Any]

_AGE = 0.9
_PATIENCE = 10.0
_BATCHES = 120


class JobView:
    """A job that runs on this machine, or ran."""

    def __init__(self, entry: JobEntry, *, allow_changes: bool = False, name: str | None = None) -> None:
        self.entry = entry
        self.allow_changes = allow_changes
        self.name = name or Path(entry.name).stem
        self.history = KeptHistory(Path(entry.log).parent)
        self._windows = StoreWindows()
        self._preview = Preview()
        self._lock = threading.Lock()
        self._report: Values | None = None
        self._read = float("-inf")
        self._described: Values = {"version": None, "plan": [], "queries": {}, "catalog": [], "script": ""}
        self._batches: dict[str, deque[Values]] = {}
        self._backlogs: dict[str, FileBacklog] = {}
        self._stopped = False
        self._check: tuple[str, ScriptCheck] | None = None

    @property
    def checkpoint(self) -> str:
        """The folder of the job."""
        return self.entry.checkpoint

    def close(self) -> None:
        """End what the view has started."""
        self._preview.close()
        self._windows.close()

    def status(self) -> Values:
        """The state of the job and of its parts, its last batches and errors."""
        report, entry = self._reported(), self.entry
        if report is None:
            return {
                "name": self.name, "state": self._silent_state,
                "since": _instant(entry.since), "trigger_seconds": None, "jobs": [], "backlog_rows": None,
                "backlog_files": None, "catch_up_seconds": None, "errors": _problems_of(entry), "batches": [],
            }  # fmt: skip
        jobs = [{**job, "name": name, **self._files(name, job)} for name, job in report["jobs"].items()]
        first = max(jobs, key=lambda job: job.get("batch_ms") or 0, default=None)
        waiting = [job["backlog_rows"] for job in jobs if job["backlog_rows"] is not None]
        files = [job["backlog_files"] for job in jobs if job["backlog_files"] is not None]
        left = [job["catch_up_seconds"] for job in jobs if job["catch_up_seconds"] is not None]
        left += [] if not waiting or (rows := _catch_up(sum(waiting), jobs)) is None else [rows]
        return {
            "name": self.name,
            "state": report["state"],
            "since": _instant(entry.since),
            "trigger_seconds": None if first is None else first["trigger_seconds"],
            "jobs": jobs,
            "backlog_rows": sum(waiting) if waiting else None,
            "backlog_files": sum(files) if files else None,
            "catch_up_seconds": max(left, default=None),
            "errors": report["errors"],
            "batches": [] if first is None else list(self._batches.get(f"job {first['name']}", ())),
        }

    @property
    def _silent_state(self) -> str:
        """The state of a job that does not answer."""
        if self._stopped:
            return "stopped"
        return self.entry.state if self.entry.state != "running" else "not answering"

    def _files(self, name: str, job: Values) -> Values:
        """The files that a job has not read, and how long it takes for them at the rate of the last batch."""
        with self._lock:
            counted = self._backlogs.get(name)
            waiting = None if counted is None else counted.count()
        if counted is None or waiting is None:
            return {"backlog_files": None, "catch_up_seconds": None}
        rate = 1000 * counted.last_files / job["batch_ms"] if job["batch_ms"] else 0
        left = 0.0 if not waiting else round(waiting / rate, 1) if rate else None
        return {"backlog_files": waiting, "catch_up_seconds": left}

    def queries(self) -> list[Values]:
        """The queries with their figures; of a job that does not run, those whose history is kept."""
        report = self._reported()
        if report is None:
            return [self._kept_query(name, columns) for name, columns in self.history.queries().items()]
        described = self._described["queries"]
        return [
            {
                **figures,
                **{part: value for part, value in described.get(name, {}).items() if part != "explain"},
                "name": name,
                "batches": list(self._batches.get(figures["output"], ())),
            }
            for name, figures in report["queries"].items()
        ]

    def _kept_query(self, name: str, columns: list[Values]) -> Values:
        return {
            "name": name, "state": "not running", "complete": True, "sql": "", "columns": columns, "batches": [],
            "error": None, "watermark": self.history.span(name)["watermark"],
        }  # fmt: skip

    def answer(self, query: str, at: int | None = None, limit: int = 500) -> Values:
        """The answer of a query now, or at an instant."""
        return self.history.answer(query, at, limit)

    def changes(self, query: str, after: tuple[int, int] | None = None, limit: int = 200) -> Values:
        """The last changes of a query, or those after a position."""
        return self.history.changes(query, after, limit)

    def span(self, query: str) -> Values:
        """The instants at which the answer of a query is known."""
        return self.history.span(query)

    def plan(self) -> list[Values]:
        """The dataflow of every job, with the figures of its last batch."""
        report = self._reported()
        return [with_figures(plan, report, self._batches) for plan in self._described["plan"]]

    def explain(self, query: str) -> str:
        """The plan of a query as text."""
        self._reported()
        found = self._described["queries"].get(query)
        if found is None:
            raise ControlError(f"the job tells nothing about query {query}: it does not run, or has no such query")
        return str(found["explain"])

    def windows(self) -> list[Values]:
        """The windows that the job keeps."""
        report = self._reported()
        return [] if report is None else self._windows.listed(report["windows"])

    def snapshot(self, sql: str, isolation: str, timeout: float = 10, limit: int = 500) -> Values:
        """The answer of a query over a kept window, read by this process from the window's files."""
        report = self._reported()
        return self._windows.snapshot({} if report is None else report["windows"], sql, isolation, timeout, limit)

    def preview(self, sql: str, seconds: float = 5, rows: int = 500) -> Values:
        """The answer of a SELECT after some seconds, which another process of low priority runs."""
        checked = self._script_check()
        checked.select(sql)
        return self._preview.run(checked.declarations, sql, seconds, rows)

    def check(self, sql: str) -> list[Values]:
        """The errors of a SELECT or CREATE QUERY."""
        return self._script_check().problems(sql)

    def catalog(self) -> list[Values]:
        """The streams, relations and windows."""
        report = self._reported()
        kept = [] if report is None else self._windows.catalog(report["windows"])
        return [*self._described["catalog"], *kept]

    def add(self, sql: str) -> str:
        """Let the job execute a CREATE QUERY statement, after all checks."""
        if not self.allow_changes:
            raise ControlError("the console is read-only: start it with --allow-changes")
        statements = read_script(sql)
        if len(statements) != 1 or not isinstance(statements[0], CreateQuery):
            raise ControlError("only one statement can be added: CREATE QUERY name AS SELECT ... INTO sink (...)")
        problems = self.check(sql)
        if problems:
            raise ControlError(problems[0]["text"])
        replies = request(self.entry.socket, "execute", text=sql)
        return "\n".join(str(reply.get("text", "")) for reply in replies)

    def metrics(self) -> str:
        """The metrics of the job's queries in the text format of Prometheus."""
        return str(request(self.entry.socket, "metrics", _PATIENCE))

    def _script_check(self) -> ScriptCheck:
        self._reported()
        with self._lock:
            script = str(self._described["script"])
            if self._check is None or self._check[0] != script:
                self._check = script, ScriptCheck(script)
            return self._check[1]

    def _reported(self) -> Values | None:
        """What the job reported last; None if it does not answer."""
        with self._lock:
            if time.monotonic() - self._read <= _AGE:
                return self._report
            self._look_up()
            try:
                after = {name: kept[-1]["batch"] for name, kept in self._batches.items() if kept}
                found = request(self.entry.socket, "report", _PATIENCE, after=after)
                if found["version"] != self._described["version"]:
                    self._described = request(self.entry.socket, "describe", _PATIENCE)
                    self._backlogs = _backlogs(self._described)
                self._report = found
                for name, batches in found["batches"].items():
                    self._batches.setdefault(name, deque(maxlen=_BATCHES)).extend(batches)
            except ControlError:
                self._report = None
            self._read = time.monotonic()
            return self._report

    def _look_up(self) -> None:
        """Know which process runs the job now: it may have been stopped, and started again."""
        found = self.entry.listed()
        self._stopped = found is None
        if found is not None and (found.pid, found.since) != (self.entry.pid, self.entry.since):
            self._batches.clear()
        self.entry = found or self.entry


def _backlogs(described: Values) -> dict[str, FileBacklog]:
    """What counts the unread files of each job."""
    declared = [one.declaration for one in read_script(described["script"]) if isinstance(one, CreateStream)]
    streams = {one.name.lower(): (one.source, one.options) for one in declared}
    return {
        name: FileBacklog(Path(job["folder"]), file_streams({n: streams[n] for n in job["streams"] if n in streams}))
        for name, job in described["sources"].items()
    }


def _instant(since: str) -> int | None:
    try:
        return round(datetime.strptime(since, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC).timestamp() * SECOND)
    except ValueError:
        return None


def _problems_of(entry: JobEntry) -> list[Values]:
    return [] if entry.error is None else [{"time": None, "query": None, "text": entry.error, "row": entry.row}]


def _catch_up(waiting: int, jobs: list[Values]) -> float | None:
    """Seconds until a backlog is read, at the rate of the last batch; None if nothing is read."""
    rate = sum(job["rows_per_second"] or 0 for job in jobs)
    return round(waiting / rate, 1) if rate else (0.0 if not waiting else None)
