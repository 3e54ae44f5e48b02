"""A job as the console sees it while it runs, stops, fails and comes back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sash.console import job_view
from sash.console.job_view import JobView
from sash.control import ControlServer
from sash.errors import ControlError, SashError
from sash.file_lock import FileLock
from sash.job_index import JobEntry
from tests.console.served import view_of

SCRIPT = "CREATE STREAM sales (ts BIGINT, item STRING) USING csv OPTIONS (path '{path}');"


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobEntry]:
    monkeypatch.setattr(job_view, "_AGE", -1.0)
    with tempfile.TemporaryDirectory(prefix="sash-") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield replace(view_of(tmp_path).entry, pid=os.getpid())


class Job:
    """Answers as a job does, whose version and batch can be set, and notes what it is asked to do."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.batch, self.asked = folder, 0, [""]

    def handle(self, command: str, arguments: Mapping[str, Any]) -> Any:
        self.asked.append(command)
        if command == "describe":
            sources = {"job": {"folder": str(self.folder / "sources"), "streams": ["sales"]}}
            script = SCRIPT.format(path=self.folder / "sales")
            return {"version": "1", "plan": [], "queries": {}, "catalog": [], "script": script, "sources": sources}
        if command == "execute":
            return [{"text": "done"}]
        figures = {
            "batch": self.batch,
            "batch_ms": 500,
            "backlog_rows": None,
            "rows_per_second": 1.0,
            "trigger_seconds": 1,
        }
        after = arguments["after"].get("job job", -1)
        batches = {"job job": [{"batch": self.batch}] if self.batch > after else []}
        return {
            "version": "1", "state": "running", "jobs": {"job": figures}, "queries": {}, "separate": {}, "windows": {},
            "batches": batches, "choices": {}, "errors": [],
        }  # fmt: skip


def test_a_job_that_stops_fails_and_comes_back(entry: JobEntry, tmp_path: Path) -> None:
    view, job = JobView(entry), Job(tmp_path)
    assert view.status()["state"] == "stopped"
    for began, batch in (("2026-01-01 00:00:00 UTC", 7), ("2026-01-01 00:05:00 UTC", 0)):
        running = replace(entry, since=began)
        lock, job.batch = FileLock(Path(entry.lock), "shop"), batch
        running.list()
        assert view.status()["state"] == "not answering"
        server = ControlServer(Path(entry.socket), job.handle)
        status = view.status()
        assert status["state"] == "running"
        assert [one["batch"] for one in status["batches"]] == [batch]  # not those of the run before
        server.close()
        lock.release()
        assert view.status()["state"] == "crashed"
        replace(running, error="query q: no time", row="(ts NULL) in a.csv").list()
        status = view.status()
        assert status["state"] == "failed"
        assert (status["errors"][0]["text"], status["errors"][0]["row"]) == ("query q: no time", "(ts NULL) in a.csv")
        running.unlist()
        assert view.status()["state"] == "stopped"


def test_unread_files_are_a_backlog(entry: JobEntry, tmp_path: Path) -> None:
    job = Job(tmp_path)
    (tmp_path / "sales").mkdir()
    for number in range(3):
        (tmp_path / "sales" / f"{number}.csv").touch()
    entry.list()
    server = ControlServer(Path(entry.socket), job.handle)
    try:
        status = JobView(entry).status()
    finally:
        server.close()
    assert (status["backlog_files"], status["backlog_rows"], status["catch_up_seconds"]) == (3, None, None)


def test_a_console_that_may_not_change_a_job_asks_it_for_nothing(entry: JobEntry, tmp_path: Path) -> None:
    job = Job(tmp_path)
    entry.list()
    server = ControlServer(Path(entry.socket), job.handle)
    statement = "CREATE QUERY q AS SELECT item FROM sales [RANGE 1 MINUTE] INTO noop"
    try:
        with pytest.raises(ControlError, match="--allow-changes"):
            JobView(entry).add(statement)
        assert "execute" not in job.asked
        allowed = JobView(entry, allow_changes=True)
        assert allowed.add(statement) == "done"
        asked = job.asked.count("execute")
        for wrong in (f"{statement}; DROP QUERY q", "DROP QUERY q", "SET spark.x = 1", "CREATE QUERY q AS SELECT x FROM sales [RANGE 1 MINUTE] INTO noop"):  # fmt: skip
            with pytest.raises(SashError):
                allowed.add(wrong)
        assert job.asked.count("execute") == asked == 1
    finally:
        server.close()
