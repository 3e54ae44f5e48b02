"""A job of the engine that changes: sinks get one stream of changes, whatever interrupts the change."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.engine import Engine
from sash.errors import CheckpointError, JobChangedError, OptionError, QueryFailedError
from sash.job import Job
from sash.spark import job_change
from sash.spark.generations import Step
from sash.spark.job_change import rescale
from tests.spark.files import FolderSink, batches_of, expected, file_engine, made_up_rows, write_batch
from tests.spark.kept_queries import AFTER, BEFORE, QUERIES, engine_of, write_rows

pytestmark = pytest.mark.spark

BY_KEY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 40 MILLISECONDS] GROUP BY k"
TOTAL = "SELECT COUNT(*) AS n FROM s [RANGE 30 MILLISECONDS]"
HIGHEST = "SELECT k, MAX(v) AS n, MIN(v) AS total FROM s [RANGE 20 MILLISECONDS] GROUP BY k"
LONGER = "SELECT k, COUNT(*) AS n FROM s [RANGE 70 MILLISECONDS] GROUP BY k"
CONSTANTS = "SELECT k, COUNT(*) AS n FROM VALUES ('k1'), ('k2'), ('k1') AS f (k) GROUP BY k"
BATCHES = batches_of(made_up_rows(6))
ROWS = [row for batch in BATCHES for row in batch]


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    with file_engine(spark, tmp_path / "in") as made:
        yield made


def job_of(engine: Engine, folder: Path, queries: Mapping[str, str], shards: int | None = None, **options: Any) -> Job:
    """A job whose sinks write a file per batch."""
    job = engine.job(checkpoint=folder / "checkpoint", trigger="available_now", shards=shards)
    for name, sql in queries.items():
        job.add(name, sql, FolderSink(folder / name), mode="changes", **options)
    return job


def run(job: Job, on_change: Any = "refuse") -> dict[str, dict[str, Any]]:
    running = job.start(on_change=on_change)
    running.await_termination()
    progress = {name: query.progress() for name, query in running.queries.items()}
    running.stop()
    return progress


def put(folder: Path, numbers: range) -> None:
    for number in numbers:
        write_batch(folder / "in", number, BATCHES[number])


def answer(folder: Path, query: str) -> Counter[tuple[Any, ...]]:
    """The answer that a sink has in the end."""
    folded: Counter[tuple[Any, ...]] = Counter()
    for path in sorted((folder / query).glob("*.parquet"), key=lambda path: int(path.stem)):
        for row in pq.read_table(path).to_pylist():
            op, _ = row.pop("_op"), row.pop("_ts")
            folded[tuple(row.values())] += 1 if op == "+" else -1
        assert all(count >= 0 for count in folded.values())
    return +folded


def final(sql: str) -> Counter[tuple[Any, ...]]:
    """The answer of a query that ran from the beginning."""
    folded: Counter[tuple[Any, ...]] = Counter()
    for (op, _, *row), count in expected(sql, ROWS).items():
        folded[tuple(row)] += count if op == "+" else -count
    return +folded


def netted(sink: Path) -> dict[tuple[Any, ...], int]:
    """The changes of each instant: equal rows of different shards may come and go at once."""
    found: Counter[tuple[Any, ...]] = Counter()
    for (op, *change), count in FolderSink(sink).read().items():
        found[tuple(change)] += count if op == "+" else -count
    return {change: count for change, count in found.items() if count}


def test_a_job_changes_and_is_rescaled(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, range(2))
    run(job_of(engine, tmp_path, {"a": BY_KEY, "b": BY_KEY}))
    queries = {"a": BY_KEY, "b": HIGHEST, "c": LONGER, "t": TOTAL, "f": CONSTANTS}
    new = job_of(engine, tmp_path, queries)
    with pytest.raises(JobChangedError, match=r"(?s)c +new .*longer than the kept rows.*expected pause"):
        new.start()
    assert {query.name: query.verdict for query in new.diff().queries} == {
        "a": "kept", "b": "derived", "c": "new", "t": "derived", "f": "derived",
    }  # fmt: skip
    put(tmp_path, range(2, 3))
    progress = run(new, "apply")
    assert progress["c"]["complete_from"] > progress["c"]["watermark"]
    assert "complete_from" not in progress["b"]
    diff = rescale(spark, str(tmp_path / "checkpoint" / "job"), 3)
    assert {query.verdict for query in diff.queries} == {"kept"}
    put(tmp_path, range(3, 6))
    with pytest.raises(JobChangedError, match="shards: 3 -> 2"):
        new.start()
    progress = run(job_of(engine, tmp_path, queries, shards=3))
    assert "complete_from" not in progress["c"]
    sinks = {name: FolderSink(tmp_path / name) for name in ("a", "b", "c", "t")}
    assert sinks["a"].read() == expected(BY_KEY, ROWS), "every change of a kept query is there once"
    for name, sql in (("b", HIGHEST), ("c", LONGER), ("t", TOTAL), ("f", CONSTANTS)):
        assert answer(tmp_path, name) == final(sql)
    assert [path.name for path in sorted((tmp_path / "checkpoint" / "job").glob("g*"))] == ["g3"]


def test_streams_of_one_data_frame_are_read_on_after_a_change(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads it once: it has one place in the offsets of each stream, and one folder."""
    frames = []
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
        reader = spark.readStream.schema("ts long, k string, v long").option("maxFilesPerTrigger", 1)
        frames.append(reader.option("maxFileAge", "36500d").parquet(str(tmp_path / folder)))
    shared, other = frames

    def put_all(numbers: range) -> None:
        put(tmp_path, numbers)
        for number in numbers:
            write_batch(tmp_path / "out", number, BATCHES[number])

    def job(*queries: str, also: Mapping[str, DataFrame] = MappingProxyType({})) -> Job:
        made = exits.enter_context(Engine(spark, shards=2))
        for name, frame in {"s": shared, "e": shared.where("v % 2 = 0"), "u": other, **also}.items():
            made.stream(name, frame)
        return job_of(made, tmp_path, {name: texts[name] for name in queries})

    even = BY_KEY.replace(" GROUP", " WHERE v % 2 = 0 GROUP")
    texts = {
        "a": BY_KEY,
        "b": BY_KEY.replace(" s ", " e "),
        "c": BY_KEY.replace(" s ", " u "),
        "d": TOTAL.replace(" s ", " e "),
    }
    with ExitStack() as exits:
        put_all(range(2))
        run(job("a", "b", "c"))
        put_all(range(2, 4))
        run(job("a", "b", "c", "d"), "apply")
        put_all(range(4, 6))
        run(job("b", "c", "d"), "apply")
        apart = spark.readStream.schema("ts long, k string, v long").parquet(str(tmp_path / "in"))
        with pytest.raises(CheckpointError, match="streams e and u are made of one DataFrame now"):
            run(job("b", "c", "d", also={"u": shared}), "apply")
        run(job("a", "b", "c", also={"s": apart}), "apply")
    assert answer(tmp_path, "c") == final(BY_KEY)
    assert answer(tmp_path, "b") == final(even)


def test_a_running_job_is_changed(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path, range(3))
    first = engine.job(checkpoint=tmp_path / "checkpoint")
    first.add("a", BY_KEY, FolderSink(tmp_path / "a"), mode="changes")
    running = first.start()
    running.process_all()
    other = engine.job(checkpoint=tmp_path / "checkpoint")
    other.add("a", BY_KEY, FolderSink(tmp_path / "a"), mode="changes")
    other.add("t", TOTAL, FolderSink(tmp_path / "t"), mode="changes")
    assert running.diff(other).query("t").verdict == "derived"
    changed = running.change(other)
    put(tmp_path, range(3, 6))
    changed.process_all()
    assert changed.queries["t"].state == "running"
    changed.stop()
    assert FolderSink(tmp_path / "a").read() == expected(BY_KEY, ROWS)
    assert answer(tmp_path, "t") == final(TOTAL)


class Stopped(Exception):  # noqa: N818  (not an error of the job's)
    """Ends a change at one of its steps."""


@pytest.mark.parametrize("method", ["change", "add"])
def test_a_running_job_goes_on_if_its_change_fails(
    engine: Engine, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, range(3))
    first = engine.job(checkpoint=tmp_path / "checkpoint")
    first.add("a", BY_KEY, FolderSink(tmp_path / "a"), mode="changes")
    running = first.start()
    running.process_all()
    other = engine.job(checkpoint=tmp_path / "checkpoint")
    other.add("t", TOTAL, FolderSink(tmp_path / "t"), mode="changes")

    def stop(self: Any, step: Step) -> None:
        done(self, step)
        if step == "manifest":
            raise Stopped

    done = job_change.JobChange._step
    with monkeypatch.context() as patched:
        patched.setattr(job_change.JobChange, "_step", stop)
        with pytest.raises(Stopped):
            running.change(other) if method == "change" else running.add("t", TOTAL, FolderSink(tmp_path / "t"))
    assert "the change failed, and the job goes on as it was" in caplog.text
    assert list(running.queries) == ["a"]
    put(tmp_path, range(3, 6))
    running.process_all()
    assert running.queries["a"].state == "running"
    running.stop()
    assert FolderSink(tmp_path / "a").read() == expected(BY_KEY, ROWS)


@pytest.mark.parametrize("where", ["begun", "seeded", "outbox", "offsets", "manifest", "committed"])
def test_a_change_that_is_interrupted_leaves_the_old_job_or_the_new_one(
    engine: Engine, tmp_path: Path, where: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, range(3))
    old, new = {"a": BY_KEY, "b": BY_KEY}, {"a": BY_KEY, "b": HIGHEST, "t": TOTAL}
    run(job_of(engine, tmp_path, old))

    def stop(self: Any, step: Step) -> None:
        done(self, step)
        if step == where:
            raise Stopped

    done = job_change.JobChange._step
    with monkeypatch.context() as patched:
        patched.setattr(job_change.JobChange, "_step", stop)
        with pytest.raises(Exception):  # noqa: B017, PT011  (within a batch, Spark raises it)
            run(job_of(engine, tmp_path, new), "apply")
    current = (tmp_path / "checkpoint" / "job" / "CURRENT").read_text()
    assert current == ("g2" if where == "committed" else "g1")
    put(tmp_path, range(3, 4))
    if where == "committed":
        run(job_of(engine, tmp_path, new))
    else:
        run(job_of(engine, tmp_path, old))
        run(job_of(engine, tmp_path, new), "apply")
    put(tmp_path, range(4, 6))
    run(job_of(engine, tmp_path, new))
    assert FolderSink(tmp_path / "a").read() == expected(BY_KEY, ROWS)
    assert answer(tmp_path, "b") == final(HIGHEST)
    assert answer(tmp_path, "t") == final(TOTAL)


KILLED = """
import os, signal, sys
from pathlib import Path
from sash.spark import job_change
from sash.spark.session import embedded_session
from tests.spark.files import file_engine
from tests.spark.test_job_changes import BY_KEY, HIGHEST, job_of, run

folder = Path(sys.argv[1])
engine = file_engine(embedded_session(cores=2), folder / "in")
done = job_change.JobChange._step

def step(self, name):
    done(self, name)
    if name == "outbox":
        print("killed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

job_change.JobChange._step = step
run(job_of(engine, folder, {"a": BY_KEY, "b": HIGHEST}), "apply")
"""


def test_a_process_that_is_killed_in_a_change_leaves_the_old_job(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path, range(3))
    run(job_of(engine, tmp_path, {"a": BY_KEY, "b": BY_KEY}))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    job = tmp_path / "checkpoint" / "job"
    assert (job / "CURRENT").read_text() == "g1"
    assert (job / "g2").exists()
    put(tmp_path, range(3, 6))
    run(job_of(engine, tmp_path, {"a": BY_KEY, "b": HIGHEST}), "apply")
    assert FolderSink(tmp_path / "a").read() == expected(BY_KEY, ROWS)
    assert answer(tmp_path, "b") == final(HIGHEST)
    manifest = json.loads((job / "g2" / "sash-job.json").read_text())
    assert manifest["first_batch"] + manifest["seed"] == 3


def test_a_batch_that_is_left_over_does_not_reach_a_sink_that_gets_other_columns(
    engine: Engine, tmp_path: Path
) -> None:
    def failing(_: DataFrame, __: int) -> None:
        raise ValueError("no room")

    put(tmp_path, range(2))
    run(job_of(engine, tmp_path, {"a": BY_KEY, "b": BY_KEY}))
    put(tmp_path, range(2, 3))
    interrupted = job_of(engine, tmp_path, {"a": BY_KEY})
    interrupted.add("b", BY_KEY, failing, mode="changes")
    with pytest.raises(QueryFailedError, match="no room"):
        run(interrupted)
    shutil.rmtree(tmp_path / "b")
    run(job_of(engine, tmp_path, {"a": BY_KEY, "b": TOTAL}), "apply")
    put(tmp_path, range(3, 6))
    run(job_of(engine, tmp_path, {"a": BY_KEY, "b": TOTAL}))
    assert FolderSink(tmp_path / "a").read() == expected(BY_KEY, ROWS)
    assert answer(tmp_path, "b") == final(TOTAL)


def test_state_of_every_kind_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """Never-ending windows, count windows, relations and lagging operators, over a change and then in other shards."""
    kinds = ("unbounded", "relation", "non_retroactive", "count_windows", "two_stages", "input_triggered", "multi_join")
    whole = BEFORE + AFTER

    def job(folder: str, shards: int, *more: str) -> Job:
        made = engine_of(spark, tmp_path / "in").job(
            checkpoint=tmp_path / folder / "checkpoint", trigger="available_now", shards=shards
        )
        for name in (*kinds, *more):
            query = made.engine.sql(QUERIES[name].sql, strategy=QUERIES[name].strategy)
            made.add(name, query, FolderSink(tmp_path / folder / name), mode="changes")
        return made

    write_rows(tmp_path / "in", range(BEFORE))
    run(job("changed", 2))
    diff = job("changed", 2, "group_by").diff()
    assert {query.name: query.verdict for query in diff.queries} == {
        **dict.fromkeys(kinds, "kept"), "group_by": "derived",
    }  # fmt: skip
    run(job("changed", 2, "group_by"), "apply")
    write_rows(tmp_path / "in", range(BEFORE, BEFORE + 1))
    run(job("changed", 2, "group_by"))
    diff = job("changed", 3).diff()
    assert {query.name: query.verdict for query in diff.queries} == {
        **dict.fromkeys(kinds, "kept"), "input_triggered": "derived", "group_by": "dropped",
    }  # fmt: skip
    write_rows(tmp_path / "in", range(BEFORE + 1, whole))
    run(job("changed", 3), "apply")
    run(job("alone", 3))
    for name in kinds:
        if name == "input_triggered":
            assert answer(tmp_path / "changed", name) == answer(tmp_path / "alone", name)
        else:
            assert netted(tmp_path / "changed" / name) == netted(tmp_path / "alone" / name), name


def test_snapshots_of_arrays_are_kept_in_the_same_shards(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sash.spark.stage.LOG_BYTES", 0)
    distinct = "SELECT DISTINCT k, v FROM s [RANGE UNBOUNDED]"
    put(tmp_path, range(2))
    run(job_of(engine, tmp_path, {"d": distinct}))
    new = job_of(engine, tmp_path, {"d": distinct, "a": BY_KEY})
    assert new.diff().query("d").verdict == "kept"
    assert job_of(engine, tmp_path, {"d": distinct}, shards=3).diff().query("d").verdict == "new"
    put(tmp_path, range(2, 6))
    run(new, "apply")
    assert FolderSink(tmp_path / "d").read() == expected(distinct, ROWS)


def test_an_answer_that_only_arrays_hold_is_not_given_to_another_sink_in_part(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sash.spark.stage.LOG_BYTES", 0)
    distinct, grouped = (
        "SELECT DISTINCT k, v FROM s [RANGE UNBOUNDED]",
        "SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k",
    )
    put(tmp_path, range(2))
    run(job_of(engine, tmp_path, {"d": distinct, "g": grouped}))
    put(tmp_path, range(2, 6))
    other = job_of(engine, tmp_path, {"d": distinct, "g": grouped, "e": distinct})
    assert "cannot be applied: query e" in other.diff().render()
    with pytest.raises(OptionError, match="query e needs the whole answer of a query whose state is kept as arrays"):
        other.start(on_change="apply")
    # The answer of an aggregate is read from its arrays.
    run(job_of(engine, tmp_path, {"d": distinct, "g": grouped, "h": grouped}), "apply")
    assert FolderSink(tmp_path / "d").read() == expected(distinct, ROWS)
    assert answer(tmp_path, "h") == answer(tmp_path, "g") == final(grouped)
