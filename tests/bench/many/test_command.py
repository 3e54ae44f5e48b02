"""The figures of many queries, from the reports of batches to the page."""

from __future__ import annotations

import doctest
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest

from bench import pairs
from bench.many import command, page, running
from bench.many.running import Batch, Measured, Started, add_one, one_job, summarize
from bench.many.workload import mixed
from sash.errors import SashError
from tests.cli.command import python

FIELDS = {"queries", "kind", "batch_ms", "cpu_seconds_per_s", "lag_ms", "alone_batch_ms", "separate_batch_ms"}
MEASURED = Measured(
    batch_ms=400,
    longest_batch_ms=500,
    cpu_seconds_per_s=0.5,
    lag_ms=900,
    worst_lag_ms=1_800,
    batches=60,
    unfinished=0,
    events_per_s=20_000,
    rows_out=1_000,
    silent_queries=0,
    late=0,
)
SETTINGS = {"rate": 10_000, "trigger": 2.0, "seconds": 120.0, "warmup": 90.0}


class Reports:
    """A query that has made these batches."""

    def __init__(self, *batches: dict[str, Any]) -> None:
        self._batches = list(batches)

    def drain_progress(self) -> list[dict[str, Any]]:
        return self._batches

    def exception(self) -> SashError | None:
        return None


def progress(batch: int, watermark: float | None, rows: int) -> dict[str, Any]:
    clock = None if watermark is None else round(watermark * 1e6)
    return {"batch": batch, "watermark": clock, "rows_out": rows, "late": 0}


def started(*queries: Reports, since: float = 0) -> Started:
    return Started(cast("Any", None), queries, since)


@pytest.mark.parametrize("module", [running, command, pairs])
def test_examples_in_docstrings(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_batches_count_if_they_end_while_measured() -> None:
    one = Reports(progress(1, 99, 5), progress(2, 101, 7), progress(3, 103.5, 1))
    other = Reports(progress(1, None, 0), progress(2, None, 0), progress(3, 102, 0))
    batches = {1: Batch(99.5, 900, 10), 2: Batch(102, 300, 20), 3: Batch(104, 500, 40)}
    found = summarize([started(one, other)], [batches], start=100, end=110, processor=5)
    assert (found.batch_ms, found.longest_batch_ms, found.batches, found.unfinished) == (400, 500, 2, 0)
    assert (found.lag_ms, found.worst_lag_ms) == (1_000, 2_000)
    assert (found.rows_out, found.silent_queries, found.events_per_s, found.cpu_seconds_per_s) == (8, 1, 6, 0.5)


def test_a_query_without_a_batch_counts_with_the_time_since_its_last() -> None:
    slow, never = {0: Batch(90, 5_000, 10)}, dict[int, Batch]()
    found = summarize([started(Reports()), started(Reports(), since=80)], [slow, never], 100, 110, processor=0)
    assert (found.batch_ms, found.longest_batch_ms, found.unfinished) == (25_000, 30_000, 2)
    assert found.lag_ms is None


def test_a_job_has_every_field_whatever_was_measured() -> None:
    nothing = command.with_all_fields({"queries": 3, "kind": "mixed"}, [])
    assert nothing.keys() >= FIELDS | {"worst_lag_ms", "rows_out"}
    assert nothing["alone_batch_ms"] is None
    everything = {"queries": 3, "kind": "mixed", **MEASURED.as_json(), "separate": MEASURED.as_json()}
    made = command.with_all_fields(everything, [MEASURED, replace(MEASURED, batch_ms=200)])
    assert (made["batch_ms"], made["alone_batch_ms"], made["separate_batch_ms"]) == (400, 300, 400)


def test_groups_are_beginnings_of_the_list() -> None:
    one, ten, alike = command.chosen_groups("1,10", 4, 10_000)
    assert ten.queries[:1] == one.queries
    assert (len(ten.queries), ten.kind, len(alike.queries), alike.kind) == (10, "mixed", 4, "alike")
    assert [group.kind for group in command.chosen_groups("1", 0, 10_000)] == ["mixed"]
    with pytest.raises(SashError, match="change --queries"):
        command.chosen_groups("101", 0, 10_000)


def test_the_page_says_what_the_figures_show() -> None:
    separate = replace(MEASURED, batch_ms=9_000, unfinished=1)
    job = {"queries": 1_000, "kind": "alike", **MEASURED.as_json(), "separate": separate.as_json()}
    job["added"] = {"batches": 2, "seconds": 3.5, "restarted": False}
    figures = {"settings": SETTINGS, "jobs": [command.with_all_fields(job, [replace(MEASURED, batch_ms=200)])]}
    written = page.page(figures)
    assert "| 1,000 alike | 400 | 500 | 0.50 | 900 | 1,800 | 1,000 | 200 | 9,000 |" in written
    assert "takes 2.00 times as long as one query alone" in written
    assert "never more than 0.9 triggers behind" in written
    assert "at least 9,000 ms" in written
    assert "took effect after 2 batches, 3.5 s, without a restart" in written
    assert written.startswith(page.page(None).rstrip("\n"))
    assert command.table(figures).row_count == 1


class Job:
    """A job in which a query that is added after batch 7 has its first changes in batch 9."""

    queries: Mapping[str, Reports] = MappingProxyType({"q000": Reports()})
    query = SimpleNamespace(lastProgress={"batchId": 7}, runId="run")

    def __init__(self, **options: str) -> None:
        self.options = options
        self.added: list[tuple[str, ...]] = []
        self.state = "made"

    def add(self, name: str, sql: str, sink: str, *, mode: str, path: str) -> None:
        self.added.append((name, sql, sink, mode, path))
        if self.state == "running":
            (Path(path) / "batch=9").mkdir(parents=True)
            (Path(path) / "batch=10").mkdir()

    def start(self) -> Job:
        self.state = "running"
        return self

    def stop(self) -> None:
        self.state = "stopped"


def test_a_job_gets_all_queries_and_one_more_while_it_runs(tmp_path: Path) -> None:
    listed = mixed(3)
    with one_job(SimpleNamespace(job=Job), listed, 2, tmp_path) as (job, [started]):
        assert job.options == {
            "name": "queries",
            "trigger": "2000 milliseconds",
            "checkpoint": str(tmp_path / "checkpoint"),
        }
        assert [given[:4] for given in job.added] == [(q.name, q.sql, "changelog", "net") for q in listed]
        assert len({given[4] for given in job.added}) == 3
        assert len(started.queries) == 1
        added = add_one(job, tmp_path, trigger=2)
    assert (added["batches"], added["restarted"]) == (2, False)
    assert job.state == "stopped"


def test_pairs_need_a_commit(tmp_path: Path) -> None:
    with pytest.raises(SashError, match="cannot read commit"):
        pairs.export("no-such-commit", tmp_path)


@pytest.mark.spark
@pytest.mark.slow
def test_queries_prints_json() -> None:
    small = ("--queries", "2", "--alike", "2", "--seconds", "4", "--warmup", "2", "--rate", "500")
    fewer = ("--ways", "separate,alone", "--alone-seconds", "3", "--alone-queries", "1", "--trigger", "1")
    done = python("-m", "bench", "queries", *small, *fewer, "--json")
    assert done.returncode == 0, done.stderr
    jobs = json.loads(done.stdout)["jobs"]
    assert [(job["queries"], job["kind"]) for job in jobs] == [(2, "mixed"), (2, "alike")]
    for job in jobs:
        assert job.keys() >= FIELDS
        assert job["alone_batch_ms"] > 0
        assert job["separate_batch_ms"] > 0
        assert job["separate"]["late"] == 0
