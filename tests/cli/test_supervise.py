from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from sash.cli.check import OK
from sash.cli.job_log import JobLog
from sash.cli.supervise import FAILED, Supervisor
from sash.errors import QueryFailedError
from sash.script.session import Session
from tests.script.fake_jobs import SALES, FakeRunningJob, fake_session, query


def running(text: str) -> tuple[Session, FakeRunningJob]:
    session, _ = fake_session(SALES + text)
    session.launch()
    job: Any = session.backend.jobs()["job"]
    return session, job


def end(job: FakeRunningJob, *, failed: str | None = None) -> None:
    job.active = False
    job.error = None if failed is None else QueryFailedError(failed)
    for one in job.queries.values():
        one.active = False


def logged(text: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in json.loads(line).items() if name != "time"} for line in text.splitlines()]


def watched(session: Session, steps: list[Any], stop: threading.Event | None = None) -> int:
    """Supervise a session; at every look, one of the steps happens first."""
    ahead = iter(steps)
    stop = stop or threading.Event()

    def attend() -> None:
        next(ahead, lambda: None)()

    return Supervisor(lambda: session, JobLog(as_json=True), attend).watch(stop, poll=0)


def test_batches_are_logged_per_query_and_for_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    session, job = running(query("a") + query("b"))

    def batch() -> None:
        job.batches = [{"batch": 1, "batch_ms": 300}]
        job.queries["a"].batches = [{"batch": 1, "rows_in": 5}]
        job.queries["b"].warnings = ["stream sales has no rows"]

    assert watched(session, [batch, lambda: end(job)]) == OK
    assert logged(capsys.readouterr().out) == [
        {"level": "info", "event": "batch", "query": "a", "batch": 1, "rows_in": 5},
        {"level": "warning", "event": "warning", "query": "b", "message": "stream sales has no rows"},
        {"level": "info", "event": "batch", "job": "job", "batch": 1, "batch_ms": 300},
        {"level": "info", "event": "ended", "query": "a"},
        {"level": "info", "event": "ended", "query": "b"},
    ]


def test_a_query_that_is_parked_and_resumed_is_logged_once_each(capsys: pytest.CaptureFixture[str]) -> None:
    session, job = running(query("a", "ON ERROR SUSPEND") + query("b"))

    def park() -> None:
        job.queries["a"].state = "parked: division by zero"

    steps = [lambda: None, park, lambda: None, job.queries["a"].resume, lambda: end(job)]
    assert watched(session, steps) == OK
    events = [(entry["event"], entry["level"]) for entry in logged(capsys.readouterr().out) if entry["query"] == "a"]
    assert events == [("parked: division by zero", "warning"), ("resumed", "info"), ("ended", "info")]


def test_a_job_that_ends_while_a_query_is_parked_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    session, job = running(query("a", "ON ERROR SUSPEND"))

    def park() -> None:
        job.queries["a"].state = "parked: no space"

    assert watched(session, [park, lambda: end(job), lambda: None]) == FAILED
    last = logged(capsys.readouterr().out)[-1]
    assert (last["event"], last["level"]) == ("the job ended while this query was parked: no space", "error")


def test_the_states_of_a_query_that_is_not_complete_are_logged(capsys: pytest.CaptureFixture[str]) -> None:
    session, job = running(query("a"))

    def wait() -> None:
        job.queries["a"].state = "complete from 2026-01-01 00:00:00 UTC"

    def complete() -> None:
        job.queries["a"].state = "running"

    assert watched(session, [wait, complete, lambda: end(job)]) == OK
    events = [entry["event"] for entry in logged(capsys.readouterr().out)]
    assert events == ["complete from 2026-01-01 00:00:00 UTC", "running", "ended"]


def test_a_failure_names_the_query_or_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    for names, error, expected in ((["a"], None, "a"), (["a", "b"], None, "job"), (["a", "b"], "b", "b")):
        session, job = running("".join(map(query, names)))
        end(job, failed="no space")
        assert job.error is not None
        job.error.query = error
        assert watched(session, [lambda: None]) == FAILED
        (entry,) = logged(capsys.readouterr().out)
        assert (entry["event"], entry["reason"]) == ("failed", "no space")
        assert entry.get("query", "job") == expected
        assert ("job" in entry) == (expected == "job")


def test_a_signal_finishes_the_batch_of_every_job(capsys: pytest.CaptureFixture[str]) -> None:
    session, job = running(query("a") + query("b", "SEPARATE"))
    stop = threading.Event()

    def signal() -> None:
        job.queries["a"].batches = [{"batch": 1}]
        stop.set()

    assert watched(session, [signal], stop) == OK
    assert not job.active
    events = [(entry["event"], entry.get("query")) for entry in logged(capsys.readouterr().out)]
    assert events == [
        ("batch", "a"),
        ("stopping after the current batch", None),
        ("stopped", "a"),
        ("stopped", "b"),
    ]


def test_a_job_whose_last_query_is_dropped_ends() -> None:
    session, _ = running(query("a"))
    assert watched(session, [lambda: session.backend.drop_query("a")]) == OK
