"""What a job tells the console of its batches: adaptive choices and when they changed, errors with their rows, and lags."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sash.console import report
from sash.console.report import JobReport
from sash.time import SECOND

PROBES = [{"what": "probe limits first", "why": "fewer matches"}]


class Job:
    """An engine and a session with one job, whose figures a test sets."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self.query = SimpleNamespace(name="totals", state="running", parked=False)
        whole = SimpleNamespace(last=lambda: self.figures)
        progress = SimpleNamespace(
            whole=whole, of=lambda _: whole, backlog=None, shards={}, operator_shards={}, alike=None
        )
        output = SimpleNamespace(runs_as="totals", completion=SimpleNamespace(reached=True))
        started = SimpleNamespace(
            progress=progress,
            outputs={"totals": output},
            planned=object(),
            alike=SimpleNamespace(job=SimpleNamespace(trigger=SimpleNamespace(milliseconds=1000))),
        )
        job = SimpleNamespace(started=started, queries={"totals": self.query}, windows={}, state="running")
        backend = SimpleNamespace(jobs=lambda: {"shop": job}, separate=dict, paused=False)
        engine: Any = SimpleNamespace(on_batch=lambda call: setattr(self, "call", call))
        session: Any = SimpleNamespace(backend=backend, queries={})
        self.report = JobReport(engine, lambda: session, lambda: "")

    def batch(self, number: int, **figures: Any) -> None:
        self.figures = {"batch": number, "batch_ms": 10, "rows_in": 1, "watermark": 5 * SECOND, **figures}
        self.call("totals", self.figures)  # type: ignore[attr-defined]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [10 * SECOND]
    monkeypatch.setattr(report, "_now", lambda: now[0])
    return now


def test_a_choice_is_told_when_it_changes(clock: list[int]) -> None:
    job = Job()
    job.batch(0, current_choices={"1.0.Join": PROBES})
    for number, choice in ((1, PROBES), (2, [{"what": "probe sales first", "why": "more matches"}]), (3, PROBES)):
        clock[0] += SECOND
        job.batch(number, current_choices={"1.0.Join": choice})
    told = [(one["time"] // SECOND, one["operator"], one["choice"]) for one in job.report.report({})["choices"]["shop"]]
    assert told == [
        (10, "1.0.Join", "probe limits first"),
        (12, "1.0.Join", "probe sales first"),
        (13, "1.0.Join", "probe limits first"),
    ]


def test_the_lag_grows_while_no_batch_comes(clock: list[int]) -> None:
    job = Job()
    job.batch(0, lag_seconds=4.5)
    clock[0] += 60 * SECOND
    told = job.report.report({})
    assert told["queries"]["totals"]["lag_seconds"] == told["jobs"]["shop"]["lag_seconds"] == 65
    assert [one["lag_seconds"] for one in told["batches"]["totals"]] == [4.5]  # as it was after that batch


def test_a_query_that_is_parked_is_an_error_once_with_its_row(clock: list[int]) -> None:
    job = Job()
    assert job.report.report({})["errors"] == []
    job.query.state = "parked since batch 3: division by zero; in the row (price 3, n 0)"
    for _ in range(2):
        (error,) = job.report.report({})["errors"]
        assert (error["query"], error["time"], error["row"]) == ("totals", 10 * SECOND, "(price 3, n 0)")
        assert error["text"] == "parked since batch 3: division by zero"
    job.query.state = "running"
    job.report.report({})
    job.query.state = "parked since batch 7: division by zero"
    assert len(job.report.report({})["errors"]) == 2


def test_only_batches_that_a_console_does_not_have_are_sent(clock: list[int]) -> None:
    job = Job()
    for number in range(3):
        job.batch(number)
    assert [one["batch"] for one in job.report.report({"totals": 0})["batches"]["totals"]] == [1, 2]
    assert [one["batch"] for one in job.report.report({})["batches"]["job shop"]] == [0, 1, 2]
