"""A job that changes: what is kept goes on, what is derived is that of a job that never changed, what is new is in time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sash.spark import stored_state
from sash.spark.generations import JobShape, last_batch
from sash.spark.job_manifest import NAME
from tests.spark.files import Rows, batches_of, made_up_rows
from tests.spark.small_jobs import SmallJob, expected, put

pytestmark = pytest.mark.spark

BY_KEY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 40 MILLISECONDS] GROUP BY k"
SHORTER = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 13 MILLISECONDS] GROUP BY k"
FILTERED = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 40 MILLISECONDS] WHERE v > 4 GROUP BY k"
HIGHEST = "SELECT k, MAX(v) AS n, MIN(v) AS total FROM s [RANGE 40 MILLISECONDS] GROUP BY k"
TOTAL = "SELECT COUNT(*) AS n FROM s [RANGE 30 MILLISECONDS]"
BY_VALUE = "SELECT v, COUNT(*) AS n FROM s [RANGE 20 MILLISECONDS] GROUP BY v"
TWO_LEVELS = (
    "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 40 MILLISECONDS] GROUP BY k) GROUP BY n"
)
JOIN = (
    "SELECT a.k, a.v AS x, b.v AS y FROM s [RANGE 6 MILLISECONDS] AS a JOIN u [RANGE 4 MILLISECONDS] AS b ON a.k = b.k"
)
LONGER = "SELECT k, COUNT(*) AS n FROM s [RANGE 60 MILLISECONDS] GROUP BY k"

BATCHES = 6
STREAMS: dict[str, list[Rows]] = {"s": batches_of(made_up_rows(BATCHES)), "u": batches_of(made_up_rows(BATCHES, 1))}
ROWS: dict[str, Rows] = {name: [row for batch in batches for row in batch] for name, batches in STREAMS.items()}
END = min(max(row["ts"] for row in rows) for rows in ROWS.values())


def check(job: SmallJob, query: str, sql: str, start: int) -> None:
    """The answers of the query are those of one that ran from the beginning, from an instant on."""
    instants = range(start, END, 1_733)
    for instant, answer in expected(sql, ROWS, instants, END).items():
        assert job.at(query, instant) == answer, f"{query} at {instant}"


def reached(numbers: int) -> int:
    """The clock after so many batches."""
    return min(max(row["ts"] for batch in batches[:numbers] for row in batch) for batches in STREAMS.values())


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> SmallJob:
    return SmallJob(spark, tmp_path / "in", tmp_path / "job")


def run_changed(
    job: SmallJob, tmp_path: Path, old: Mapping[str, str], new: Mapping[str, str], shards: tuple[int, int] = (2, 2)
) -> None:
    before, after = job.shape(old, shards[0]), job.shape(new, shards[1])
    put(tmp_path / "in", STREAMS, range(3))
    job.run(before)
    job.change(before, after)
    put(tmp_path / "in", STREAMS, range(3, BATCHES))
    job.run(after)


def test_queries_are_added_and_dropped(job: SmallJob, tmp_path: Path) -> None:
    run_changed(job, tmp_path, {"a": BY_KEY, "b": TOTAL}, {"a": BY_KEY, "c": TWO_LEVELS, "d": BY_VALUE, "e": LONGER})
    check(job, "a", BY_KEY, 0)
    check(job, "c", TWO_LEVELS, reached(3))
    check(job, "d", BY_VALUE, reached(3))
    check(job, "e", LONGER, reached(3) + 20_001)
    assert max(job.got["b"]) == 2
    assert sorted(job.got["a"]) == [0, 1, 2, 4, 5, 6]


def test_a_chain_of_changes(job: SmallJob, tmp_path: Path) -> None:
    """Windows, filters, aggregates, levels and shards change, one batch apart; each time a batch is left uncommitted."""
    steps: list[tuple[dict[str, str], int]] = [
        ({"a": BY_KEY, "b": BY_KEY, "j": JOIN}, 2),
        ({"a": BY_KEY, "b": SHORTER, "j": JOIN, "t": TOTAL}, 3),
        ({"a": BY_KEY, "b": FILTERED, "j": JOIN, "c": TWO_LEVELS, "t": TOTAL}, 5),
        ({"a": BY_KEY, "b": HIGHEST, "c": TWO_LEVELS, "t": TOTAL, "d": BY_VALUE}, 1),
        ({"a": BY_KEY, "b": BY_KEY, "t": TOTAL, "d": BY_VALUE}, 4),
    ]
    since: dict[tuple[str, str], int] = {}
    shape = None
    for number, (queries, shards) in enumerate(steps):
        put(tmp_path / "in", STREAMS, range(number, number + 1))
        following = job.shape(queries, shards)
        if shape is not None:
            job.run(shape, fail_in_sink=True)
            diff = job.change(shape, following)
            assert all(query.verdict != "new" for query in diff.queries), diff.render()
        shape = following
        for name, sql in queries.items():
            since.setdefault((name, sql), 0 if number == 0 else reached(number + 1))
        job.run(shape)
    put(tmp_path / "in", STREAMS, range(len(steps), BATCHES))
    job.run(shape)
    for name, sql in steps[-1][0].items():
        check(job, name, sql, since[name, sql] if sql == steps[-1][0][name] and name != "b" else reached(len(steps)))


def sharing(shape: JobShape) -> dict[str, bool]:
    """Whether the channel of each query's rows keeps them for windows of several lengths."""
    plan = shape.plan.physical
    return {one.query: any(given.common for given in plan.stages[one.stage].inputs) for one in plan.outputs}


def test_windows_share_their_rows_and_keep_them_apart_again(job: SmallJob, tmp_path: Path) -> None:
    """A window joins others, rows move to other shards, and one window is left, which keeps its rows itself.

    In the end all rows move, in as many shards: the last generation begins with an empty state.
    """
    three = {"a": BY_KEY, "b": SHORTER, "f": FILTERED}
    steps: list[tuple[dict[str, str], int]] = [
        (three, 2),
        ({**three, "l": LONGER}, 2),
        ({**three, "l": LONGER}, 3),
        ({"b": SHORTER, "h": HIGHEST}, 3),
        ({"v": BY_VALUE}, 3),
    ]
    shape = None
    for number, (queries, shards) in enumerate(steps):
        put(tmp_path / "in", STREAMS, range(number, number + 1))
        following = job.shape(queries, shards)
        assert sharing(following) == dict.fromkeys(queries, number < 3), queries
        if shape is not None:
            job.run(shape)
            job.change(shape, following)
        else:
            job.run(following)
        shape = following
    put(tmp_path / "in", STREAMS, range(len(steps), BATCHES))
    assert shape is not None
    job.run(shape)
    check(job, "v", BY_VALUE, reached(5))
    assert json.loads(job.generations.current.read(NAME) or "{}")["seed"] == 0
    for name, sql, last in (("a", BY_KEY, 4), ("f", FILTERED, 4), ("b", SHORTER, 5)):
        for instant, answer in expected(sql, ROWS, range(0, reached(last), 1_733), END).items():
            assert job.at(name, instant) == answer, f"{name} at {instant}"


def test_headers_are_read_from_what_the_last_batch_changed(
    job: SmallJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job with two levels, before and after it changed: they are those of the whole state, which is not read."""
    old, new = job.shape({"a": BY_KEY, "b": TWO_LEVELS}, 2), job.shape({"a": BY_KEY, "b": TWO_LEVELS, "c": JOIN}, 2)
    put(tmp_path / "in", STREAMS, range(3))
    job.run(old)
    for shape in (old, new):
        if shape is new:
            job.change(old, new)
        folder = job.generations.current
        batch = last_batch(folder)[0]
        assert batch is not None
        whole = {
            (row["level"], row["label"]): json.loads(bytes(row["data"]))
            for row in stored_state.state_frame(job.spark, folder.location, shape.layout.height).collect()
            if row["number"] == stored_state.HEADER
        }
        with monkeypatch.context() as patched:
            patched.delattr(stored_state, "state_frame")
            assert stored_state.read_headers(job.spark, folder.location, shape.layout, batch) == whole
