from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.engine import Engine
from sash.errors import CatalogError, CheckpointError, OptionError, QueryFailedError, SashError
from sash.job import Job
from sash.metrics import exposition
from sash.operators.scalar.failing_row import split_row
from sash.spark.job_batch import JobMessages
from sash.testing import replay
from sash.window_store.options import SnapshotOptions
from tests.cli.command import QUICK
from tests.spark.files import SQL, TWO_STAGES, FolderSink, batches_of, expected, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]

UNMATCHED = (
    "SELECT a.k, a.v FROM s [RANGE 15 MILLISECONDS] AS a LEFT ANTI JOIN (SELECT k FROM s [RANGE 1 MILLISECOND] WHERE v > 7) "
    "AS b ON a.k = b.k"
)
NONE = "SELECT COUNT(*) AS n FROM s [RANGE 60 MILLISECONDS]"


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    with file_engine(spark, tmp_path / "in") as made:
        yield made


def changes_in(log: Path) -> Counter[tuple[Any, ...]]:
    found = pd.read_parquet(log)
    return Counter(map(tuple, found.drop(columns="batch").itertuples(index=False)))


class Flaky(FolderSink):
    """A sink that fails while it is told to, and counts its calls."""

    def __init__(self, directory: Path, problem: Exception | None = None) -> None:
        super().__init__(directory)
        self.problem = problem
        self.calls: list[int] = []

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.calls.append(number)
        if self.problem is not None:
            raise self.problem
        super().__call__(batch, number)


def test_differential_each_query_has_the_changes_that_it_has_alone(engine: Engine, tmp_path: Path) -> None:
    rows, log, files = made_up_rows(3), tmp_path / "log", tmp_path / "files"
    sink = FolderSink(tmp_path / "out")
    job = engine.job(checkpoint=tmp_path / "checkpoint")
    job.add("first", SQL, "changelog", path=str(log))
    job.add("second", TWO_STAGES, sink)
    job.add("third", SQL, "parquet", path=str(files))
    seen: list[tuple[str, int]] = []
    engine.on_progress(lambda name, progress: seen.append((name, progress["batch"])))
    running = job.start()
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        running.process_all()
    assert changes_in(log) == changes_in(files) == expected(SQL, rows)
    assert sink.read() == expected(TWO_STAGES, rows)
    assert sorted(path.name for path in files.glob("batch=*")) == ["batch=0", "batch=1", "batch=2"]

    progress = {name: query.progress() for name, query in running.queries.items()}
    assert {name: seen["total_rows_in"] for name, seen in progress.items()} == dict.fromkeys(progress, len(rows))
    assert progress["first"]["total_rows_out"] == expected(SQL, rows).total()
    assert progress["second"]["total_rows_out"] == expected(TWO_STAGES, rows).total()
    assert progress["first"]["state_bytes"] > 0
    assert progress["first"]["watermark"] == rows[-1]["ts"]
    assert progress["first"]["lag_seconds"] > 10**9 / 2
    assert sum(one["share"] for one in progress.values()) == pytest.approx(1, abs=0.001)
    assert running.progress()["total_rows_in"] == len(rows)
    assert [one["batch"] for one in running.queries["first"].drain_progress()] == [0, 1, 2]
    assert engine.running["second"].state == "running"
    assert "actual:" in running.queries["second"].explain()
    text = exposition(engine.running)
    assert f'sash_rows_in_total{{query="third"}} {len(rows)}' in text
    assert 'sash_parked{query="first"} 0' in text
    engine.close()
    assert not running.active
    assert {("first", 0), ("second", 1), ("third", 2)} <= set(seen)
    manifest = json.loads((tmp_path / "checkpoint" / "job" / "g1" / "sash-job.json").read_text())
    assert [query["name"] for query in manifest["queries"]] == ["first", "second", "third"]


def test_a_paused_job_reads_nothing_and_goes_on_where_it_was(engine: Engine, tmp_path: Path) -> None:
    rows, sink = made_up_rows(3), Flaky(tmp_path / "out")
    job = engine.job(checkpoint=tmp_path / "checkpoint")
    job.add("totals", SQL, sink)
    running = job.start()
    first, second, third = batches_of(rows)
    write_batch(tmp_path / "in", 0, first)
    running.process_all()
    running.pause()
    assert (running.state, running.active, running.query.isActive) == ("paused", True, False)
    write_batch(tmp_path / "in", 1, second)
    with pytest.raises(CheckpointError, match="in use"):
        job.start()
    running.resume()
    running.resume()
    assert (running.state, running.query.isActive) == ("running", True)
    running.process_all()
    assert sink.calls == [0, 1]
    running.pause()
    running.finish()
    assert running.state == "stopped"
    write_batch(tmp_path / "in", 2, third)
    last = job.start()
    last.process_all()
    last.stop()
    assert sink.read() == expected(SQL, rows)


def test_a_stage_without_rows_after_a_restart_has_its_window_in_the_batch_after_it(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    """The arenas are lost in the restart; the first batch is of one stream only, and seals new ones."""
    rows, other = made_up_rows(4), SQL.replace("FROM s ", "FROM u ")
    (tmp_path / "other").mkdir()
    reader = spark.readStream.schema("ts long, k string, v long").option("maxFileAge", "36500d")
    engine.stream("u", reader.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "other")))
    sinks = {name: FolderSink(tmp_path / name) for name in ("q", "w")}
    job = engine.job(checkpoint=tmp_path / "checkpoint")
    for (name, sink), sql in zip(sinks.items(), (SQL, other), strict=True):
        job.add(name, sql, sink, mode="changes")
    steps = [(number, name) for number in range(4) for name in ("in", "other")]
    running = job.start()
    for number, name in steps:
        if (number, name) == (2, "in"):
            running.finish()
            for home in Path(tempfile.gettempdir()).glob(f"blockmgr-*/sash/{running.id}"):
                shutil.rmtree(home)
            running = job.start()
        write_batch(tmp_path / name, number, batches_of(rows)[number])
        running.process_all()
    running.finish()
    assert sinks["q"].read() == sinks["w"].read() == expected(SQL, rows)


def test_a_repeated_batch_goes_only_to_the_sinks_that_have_not_got_it(engine: Engine, tmp_path: Path) -> None:
    rows, checkpoint = made_up_rows(2), tmp_path / "checkpoint"
    whole, failing = Flaky(tmp_path / "whole"), Flaky(tmp_path / "failing")
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    job = engine.job(trigger="available_now", checkpoint=checkpoint)
    job.add("whole", SQL, whole)
    job.add("failing", TWO_STAGES, failing)
    failing.problem = ValueError("no room")
    running = job.start()
    with pytest.raises(QueryFailedError, match=r"query failing: .*no room") as raised:
        running.await_termination()
    assert raised.value.query == "failing"
    assert running.queries["whole"].state.startswith("failed: query failing")
    failing.problem = None
    job.start().await_termination()
    assert whole.calls == [0, 1]
    assert failing.calls == [0, 0, 1]
    assert whole.read() == expected(SQL, rows)
    assert failing.read() == expected(TWO_STAGES, rows)

    changed = engine.job(checkpoint=checkpoint)
    changed.add("whole", NONE, whole)
    with pytest.raises(CheckpointError, match=r"(?s)has changed.*failing +dropped"):
        changed.start()


def test_a_sink_that_fails_parks_its_query_alone(engine: Engine, tmp_path: Path) -> None:
    rows, checkpoint = made_up_rows(5), tmp_path / "checkpoint"
    good, bad = Flaky(tmp_path / "good"), Flaky(tmp_path / "bad")

    def job() -> Any:
        made = engine.job(checkpoint=checkpoint)
        made.add("good", SQL, good)
        made.add("bad", TWO_STAGES, bad, on_error="suspend")
        return made

    running = job().start()
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        bad.problem = ValueError("no room") if 1 <= number < 4 else None
        running.process_all()
        if number == 2:  # a parked query stays so after a restart
            running.stop()
            running = job().start()
    assert running.queries["bad"].state.endswith("ValueError: no room")
    assert bad.calls == [0, 1]
    assert running.queries["bad"].progress()["outbox_bytes"] > 0
    bad.problem = ValueError("still none")
    with pytest.raises(ValueError, match="still none"):
        running.queries["bad"].resume()
    bad.problem = None
    assert running.queries["bad"].parked
    assert running.queries["bad"].resume() == 4
    assert running.queries["bad"].state == "running"
    with pytest.raises(OptionError, match="bad is not parked"):
        running.queries["bad"].resume()
    assert good.read() == expected(SQL, rows)
    assert bad.read() == expected(TWO_STAGES, rows)


@pytest.mark.parametrize(
    "failing",
    [
        "SELECT k, SUM(100 / (v - 20)) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k",
        "SELECT k, 100 / (MAX(v) - 20) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k",
    ],
)
def test_an_expression_that_fails_parks_its_query_alone(engine: Engine, tmp_path: Path, failing: str) -> None:
    rows, good, bad = made_up_rows(3), FolderSink(tmp_path / "good"), FolderSink(tmp_path / "bad")
    rows[50]["v"] = 20
    job = engine.job(checkpoint=tmp_path / "checkpoint")
    job.add("good", SQL, good)
    job.add("bad", failing, bad, on_error="suspend")
    job.add("safe", NONE, "noop")
    running = job.start()
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        running.process_all()
    assert running.queries["bad"].state.startswith("parked since")
    assert "zero" in running.queries["bad"].state.lower()
    _, row = split_row(running.queries["bad"].state)
    assert row == ("(k k4, max(v) 20)" if "MAX" in failing else None)  # Spark, above the source, does not tell
    assert running.queries["safe"].state == "running"
    assert good.read() == expected(SQL, rows)
    assert bad.read() == expected(failing, rows[:40])


def test_a_query_that_grows_past_its_limit_is_parked_and_resumes_where_it_was(engine: Engine, tmp_path: Path) -> None:
    rows, good, large = made_up_rows(4), FolderSink(tmp_path / "good"), FolderSink(tmp_path / "large")
    job = engine.job(checkpoint=tmp_path / "checkpoint")
    job.add("good", SQL, good)
    job.add("large", TWO_STAGES, large, max_state=1)
    running = job.start()
    for number, batch in enumerate(batches_of(rows)):
        if number == 3:
            running.started.run.batches.most_state = {}
            assert "exceeds MAX STATE" in running.queries["large"].state
            assert large.read() == expected(TWO_STAGES, rows[:40])
            running.queries["large"].resume()
        write_batch(tmp_path / "in", number, batch)
        running.process_all()
    assert running.queries["large"].state == "running"
    assert good.read() == expected(SQL, rows)
    assert large.read() == expected(TWO_STAGES, rows)


def test_a_worker_that_does_not_start_in_time_is_tried_again(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, sink, times, read = made_up_rows(1), FolderSink(tmp_path / "out"), [0], JobMessages.of

    def fail_twice(table: pa.Table) -> JobMessages:
        times[0] += 1
        if times[0] <= 2:
            raise RuntimeError("Python worker failed to connect back")
        return read(table)

    monkeypatch.setattr(JobMessages, "of", fail_twice)
    job = engine.job()
    job.add("only", SQL, sink)
    write_batch(tmp_path / "in", 0, rows)
    running = job.start()
    running.process_all()
    assert sink.read() == expected(SQL, rows)
    assert caplog.text.count("did not start in time") == 2


def test_windows_are_kept_by_a_job(engine: Engine, tmp_path: Path) -> None:
    """The length of their sub-windows changes with the job: while it runs, and when it is started again.

    The rows of a kept negation are stored by expiration time, and stay so (paper 5, 5.3.2).
    """
    rows = made_up_rows(10)
    given, whole = iter(enumerate(batches_of(rows))), replay(UNMATCHED, {"s": rows}, unit="us")

    def job_of(every: str) -> Job:
        job = engine.job(checkpoint=tmp_path / "checkpoint")
        job.add("only", SQL, "noop")
        job.keep("s", "40 milliseconds", every)
        job.keep(engine.sql(UNMATCHED), "60 milliseconds", "10 milliseconds", name="answer")
        return job

    def run(count: int) -> tuple[Any, Any]:
        """The progress of the window before and after so many batches, with its rows checked after each."""
        before = running.windows["s"].progress()
        for number, batch in itertools.islice(given, count):
            write_batch(tmp_path / "in", number, batch)
            running.process_all()
            found = engine.snapshot("SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 40 MILLISECONDS]")
            end = found.as_of
            inside = [row for row in rows if end - 40_000 <= row["ts"] < end]
            assert found.table.to_pylist() == [{"n": len(inside), "total": sum(row["v"] for row in inside)}]
            answer = engine.snapshot("SELECT k, COUNT(*) AS n FROM answer GROUP BY k")
            right = Counter(row["k"] for row in whole.at(answer.as_of - 1))
            assert {row["k"]: row["n"] for row in answer.to_pylist()} == right
        return before, running.windows["s"].progress()

    running = job_of("10 milliseconds").start()
    _, progress = run(3)
    assert list(running.queries) == ["only"]
    assert progress["updates"] > 4
    engine.snapshot("SELECT MAX(v) AS most FROM s [RANGE 40 MILLISECONDS]")
    (group,) = running.windows["s"].progress()["query_groups"]
    assert (group["window"], group["queries"]) == ("s", 0)
    assert group["scans"] > 0
    scans = f'sash_query_group_scans_total{{window="s",summaries="{", ".join(group["summaries"])}"}} {group["scans"]}'
    assert scans in exposition({}, engine.windows.groups()).splitlines()
    running = running.change(job_of("20 milliseconds"))
    before, progress = run(4)
    assert before["changing"]["every"] == "0.02 s"
    assert "changing" not in progress
    running.stop()
    running = job_of("5 milliseconds").start()
    before, progress = run(3)
    assert before["changing"]["every"] == "0.005 s"
    assert "changing" not in progress
    assert engine.windows.plan("SELECT k FROM answer", SnapshotOptions()).window.layout.ends
    running.stop()
    with pytest.raises(SashError, match="answer"):
        engine.snapshot("SELECT COUNT(*) AS n FROM answer")


def test_jobs_are_checked_when_they_are_made(engine: Engine, tmp_path: Path) -> None:
    job = engine.job()
    with pytest.raises(OptionError, match="has no queries"):
        job.start()
    job.add("a", SQL, "changelog", path=str(tmp_path / "log"))
    with pytest.raises(CatalogError, match="already has a query A"):
        job.add("A", SQL)
    with pytest.raises(CatalogError, match="b would write to the changelog of a"):
        job.add("b", SQL, "changelog", path=str(tmp_path / "log"))
    with pytest.raises(OptionError, match="on_error"):
        job.add("b", SQL, on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="max_state must be a size"):
        job.add("b", SQL, max_state="much")
    job.add("b", SQL, "json", path=str(tmp_path / "json"), on_error="suspend")
    job.add("c", NONE, print)
    text = job.explain()
    assert "a: changelog, mode changes, exactly once" in text
    assert "b: json, mode changes, exactly once; suspended if it fails" in text
    assert "c: function, mode changes, at least once" in text


def test_differential_a_job_that_is_killed_between_two_sinks(tmp_path: Path) -> None:
    rows = made_up_rows(3)
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)

    def drive(*deadly: str) -> int:
        command = [sys.executable, "-m", "tests.spark.job_driver", str(tmp_path), *deadly]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        with (tmp_path / "log").open("ab") as log:
            return subprocess.run(
                command, cwd=ROOT, env={**os.environ, **QUICK, "PYTHONPATH": paths}, check=False, stdout=log, stderr=log
            ).returncode

    assert drive("1") == -signal.SIGKILL
    assert drive() == 0
    assert FolderSink(tmp_path / "first").read() == expected(SQL, rows)
    assert FolderSink(tmp_path / "second").read() == expected(TWO_STAGES, rows)
    calls = Counter((tmp_path / "calls").read_text().splitlines())
    assert calls == Counter(f"{name} {number}" for name in ("first", "second") for number in range(3))
