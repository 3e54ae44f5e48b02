"""Jobs with alike queries that change: sinks get one stream of changes each, whether their queries run together or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.change.diff import JobDiff
from sash.engine import Engine
from sash.errors import JobChangedError, SashError
from sash.job import Job
from sash.spark.job_change import rescale
from tests.spark.changelogs import answer, changes
from tests.spark.files import FolderSink, batches_of, expected, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

BY_KEY = "SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 60 MILLISECONDS] WHERE k = 'k{}'"
HAVING = "SELECT k, SUM(v) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k HAVING SUM(v) > {}"
TOTAL = "SELECT COUNT(*) AS n FROM s [RANGE 50 MILLISECONDS]"
SMALL = "SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 50 MILLISECONDS] WHERE v < 5"
BATCHES = batches_of(made_up_rows(6))


def by_key(keys: range) -> dict[str, str]:
    return {f"key{number}": BY_KEY.format(number) for number in keys}


def having(limits: range) -> dict[str, str]:
    return {f"above{number}": HAVING.format(40 * number + 1) for number in limits}


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    with file_engine(spark, tmp_path / "in") as made:
        yield made


def job_of(engine: Engine, folder: Path, queries: Mapping[str, str], shards: int | None = None) -> Job:
    """A job that writes changelogs, each in a folder with the name of its query."""
    job = engine.job(checkpoint=folder / "checkpoint", trigger="available_now", shards=shards)
    for name, sql in queries.items():
        job.add(name, sql, "changelog", path=str(folder / "logs" / name), mode="changes")
    return job


def run(job: Job, on_change: Any = "refuse") -> None:
    running = job.start(on_change=on_change)
    running.await_termination()
    running.stop()


def put(folder: Path, numbers: range) -> None:
    for number in numbers:
        write_batch(folder / "in", number, BATCHES[number])


def final(sql: str, batches: int = len(BATCHES)) -> Counter[tuple[Any, ...]]:
    """The answer of a query that ran alone, from the beginning."""
    folded: Counter[tuple[Any, ...]] = Counter()
    for (op, _, *row), count in expected(sql, [row for batch in BATCHES[:batches] for row in batch]).items():
        folded[tuple(row)] += count if op == "+" else -count
    return +folded


def all_changes(sql: str, batches: int = len(BATCHES)) -> Counter[tuple[Any, ...]]:
    return expected(sql, [row for batch in BATCHES[:batches] for row in batch])


def verdicts(diff: JobDiff) -> dict[str, str]:
    return {query.name: query.verdict for query in diff.queries}


def generation(folder: Path) -> str:
    return (folder / "checkpoint" / "job" / "CURRENT").read_text()


def test_alike_queries_stay_when_others_come_and_go_and_shards_change(
    engine: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    alike = {**by_key(range(8)), **having(range(8))}
    put(tmp_path, range(2))
    run(job_of(engine, tmp_path, alike))
    more = job_of(engine, tmp_path, {**alike, "t": TOTAL})
    assert verdicts(more.diff()) == {**dict.fromkeys(alike, "kept"), "t": "derived"}
    shown = more.diff().render().splitlines()
    assert len(shown) == 4
    assert shown[0].split() == ["8", "alike", "queries", "(key0,", "key1,", "key2,", "...)", "kept"]
    with pytest.raises(JobChangedError, match=r"8 alike queries \(above0, above1, above2, \.\.\.\) +kept"):
        run(more)
    put(tmp_path, range(2, 3))
    run(more, "apply")
    assert set(verdicts(rescale(spark, str(tmp_path / "checkpoint" / "job"), 3)).values()) == {"kept"}
    put(tmp_path, range(3, 4))
    run(job_of(engine, tmp_path, {**alike, "t": TOTAL}, shards=3))
    put(tmp_path, range(4, 5))
    run(job_of(engine, tmp_path, alike, shards=3), "apply")
    put(tmp_path, range(5, 6))
    run(job_of(engine, tmp_path, by_key(range(8))), "apply")
    assert generation(tmp_path) == "g5"
    for name, sql in by_key(range(8)).items():
        assert changes(tmp_path / "logs" / name) == all_changes(sql), "every change of a kept query is there once"
    for name, sql in having(range(8)).items():
        assert changes(tmp_path / "logs" / name) == all_changes(sql, 5)
    assert answer(tmp_path / "logs" / "t") == final(TOTAL, 4)


def test_separate_queries_become_alike_ones_without_a_change_of_their_answers(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path, range(2))
    run(job_of(engine, tmp_path, {**by_key(range(7)), **having(range(7))}))
    together = {**by_key(range(8)), **having(range(8))}
    job = job_of(engine, tmp_path, together)
    assert set(verdicts(job.diff()).values()) == {"derived"}
    run(job, "apply")
    for name, sql in {**by_key(range(7)), **having(range(7))}.items():
        assert changes(tmp_path / "logs" / name) == all_changes(sql, 2), "the answer is the same"
    for name in ("key7", "above7"):
        assert answer(tmp_path / "logs" / name) == final(together[name], 2)
    put(tmp_path, range(2, 4))
    run(job_of(engine, tmp_path, together))
    for name, sql in {**by_key(range(7)), **having(range(7))}.items():
        assert changes(tmp_path / "logs" / name) == all_changes(sql, 4)
    # A query comes, one goes, and one gets another constant: this needs no new generation.
    put(tmp_path, range(4, 6))
    kept = answer(tmp_path / "logs" / "key0")
    other = {**together, "key9": BY_KEY.format(9), "key1": BY_KEY.format(8)}
    del other["key0"]
    changed = job_of(engine, tmp_path, other)
    assert not changed.diff().changed
    assert {n: v for n, v in verdicts(changed.diff()).items() if v != "kept"} == {
        "key9": "derived", "key1": "derived", "key0": "dropped",
    }  # fmt: skip
    run(changed)
    assert generation(tmp_path) == "g2"
    for name, sql in other.items():
        assert answer(tmp_path / "logs" / name) == final(sql)
    assert answer(tmp_path / "logs" / "key0") == kept


def test_queries_join_and_leave_alike_ones_and_change_their_sinks(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path, range(3))
    run(job_of(engine, tmp_path, {**by_key(range(9)), "moving": SMALL}))
    queries = {**by_key(range(8)), "moving": BY_KEY.format(9), "key8": SMALL}
    job = job_of(engine, tmp_path, {name: sql for name, sql in queries.items() if name != "key0"})
    job.add("key0", queries["key0"], "changelog", path=str(tmp_path / "logs" / "new0"), mode="changes")
    before = answer(tmp_path / "logs" / "key0")
    put(tmp_path, range(3, 6))
    run(job, "apply")
    for name, sql in by_key(range(1, 8)).items():
        assert changes(tmp_path / "logs" / name) == all_changes(sql)
    assert answer(tmp_path / "logs" / "new0") == final(queries["key0"])
    assert answer(tmp_path / "logs" / "key0") == before
    for name in ("moving", "key8"):
        assert answer(tmp_path / "logs" / name) == final(queries[name]), "the old answer is retracted"


class Failing(FolderSink):
    """Fails while `fails` is set."""

    fails = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        if self.fails and batch.count():
            raise RuntimeError("no room")
        super().__call__(batch, number)


def test_a_batch_of_alike_queries_that_was_interrupted_is_finished_before_the_change(
    engine: Engine, tmp_path: Path
) -> None:
    sink = Failing(tmp_path / "logs" / "key3")

    def job(**more: str) -> Job:
        made = job_of(engine, tmp_path, {**{n: q for n, q in by_key(range(8)).items() if n != "key3"}, **more})
        made.add("key3", BY_KEY.format(3), sink, mode="changes", retry="0 seconds")
        return made

    put(tmp_path, range(2))
    run(job())
    put(tmp_path, range(2, 3))
    sink.fails = True
    with pytest.raises(SashError, match="no room"):
        run(job())
    checkpoint = tmp_path / "checkpoint" / "job" / "g1"
    assert (checkpoint / "offsets" / "2").exists()
    assert not (checkpoint / "commits" / "2").exists()
    sink.fails = False
    put(tmp_path, range(3, 6))
    run(job(t=TOTAL), "apply")
    for name, sql in by_key(range(8)).items():
        found = sink.read() if name == "key3" else changes(tmp_path / "logs" / name)
        assert found == all_changes(sql), name
    assert answer(tmp_path / "logs" / "t") == final(TOTAL)


def test_a_running_job_changes_with_a_pause_only_if_it_must(engine: Engine, tmp_path: Path) -> None:
    def job(queries: Mapping[str, str]) -> Job:
        made = engine.job(checkpoint=tmp_path / "checkpoint")
        for name, sql in queries.items():
            made.add(name, sql, "changelog", path=str(tmp_path / "logs" / name), mode="changes")
        return made

    put(tmp_path, range(2))
    running = job(by_key(range(8))).start()
    running.process_all()
    other = {**by_key(range(1, 8)), "key9": BY_KEY.format(9), "key2": BY_KEY.format(8)}
    assert running.change(job(other)) is running, "only constants change"
    assert sorted(running.queries) == sorted(other)
    assert "k8" in running.queries["key2"].explain()
    run_id = running.query.runId
    put(tmp_path, range(2, 4))
    running.process_all()
    assert running.query.runId == run_id
    added = running.add("t", TOTAL, "changelog", path=str(tmp_path / "logs" / "t"), mode="changes")
    assert added.job is running
    assert running.query.runId != run_id
    put(tmp_path, range(4, 6))
    running.process_all()
    for name, sql in {**other, "t": TOTAL}.items():
        assert answer(tmp_path / "logs" / name) == final(sql)
    running.remove("t")
    assert sorted(running.queries) == sorted(other)
    running.stop()
    assert generation(tmp_path) == "g3"
