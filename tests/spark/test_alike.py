"""Alike queries of a job on Spark: each has its own answers, and queries come and go without a restart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.errors import OptionError
from sash.job import Job
from sash.testing import replay
from tests.spark.changelogs import answer, changes
from tests.spark.files import ROWS_PER_BATCH, Rows, batches_of, expected, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

BY_KEY = "SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 60 MILLISECONDS] WHERE k = 'k{}'"
HAVING = "SELECT k, SUM(v) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k HAVING SUM(v) > {}"


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    with file_engine(spark, tmp_path / "in") as made:
        yield made


def _job(engine: Engine, logs: Path, checkpoint: Path, mode: str, keys: range = range(8)) -> Job:
    """A job of alike queries by a key, and of others by a threshold."""
    job = engine.job(checkpoint=str(checkpoint))
    for number in keys:
        job.add(f"key{number}", BY_KEY.format(number), "changelog", mode=mode, path=str(logs / f"key{number}"))
    for number in range(8):
        sql = HAVING.format(40 * number + 1)
        job.add(f"above{number}", sql, "changelog", mode=mode, path=str(logs / f"above{number}"))
    return job


def _alone(sql: str, rows: Rows, batch: int) -> Counter[tuple[Any, ...]]:
    """The answer of the query alone after a batch: at the last instant before its last row."""
    result = replay(sql, {"s": rows}, unit="us")
    seen = rows[: (batch + 1) * ROWS_PER_BATCH]
    return Counter(tuple(row.values()) for row in result.at(max(row["ts"] for row in seen) - 1))


def test_differential_every_query_has_the_changes_that_it_has_alone(engine: Engine, tmp_path: Path) -> None:
    rows, logs = made_up_rows(4), tmp_path / "logs"
    running = _job(engine, logs, tmp_path / "checkpoint", "changes").start()
    assert len(running.started.planned.physical.outputs) == 2
    assert "8 queries that differ in constants" in running.explain()
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        running.process_all()
    for number in range(8):
        assert changes(logs / f"key{number}") == expected(BY_KEY.format(number), rows)
        assert changes(logs / f"above{number}") == expected(HAVING.format(40 * number + 1), rows)
    seen = running.queries["key3"].drain_progress()
    assert [one["batch"] for one in seen] == list(range(len(seen)))
    made = expected(BY_KEY.format(3), rows).total()
    assert sum(one["rows_out"] for one in seen) == running.queries["key3"].progress()["total_rows_out"] == made
    running.stop()


def test_queries_are_added_and_removed_without_a_restart(engine: Engine, tmp_path: Path) -> None:
    rows, logs, checkpoint = made_up_rows(6), tmp_path / "logs", tmp_path / "checkpoint"
    running = _job(engine, logs, checkpoint, "net").start()
    run, parts = running.query.runId, batches_of(rows)
    for number in (0, 1):
        write_batch(tmp_path / "in", number, parts[number])
        running.process_all()
    running.add("key9", BY_KEY.format(9), "changelog", mode="net", path=str(logs / "key9"))
    running.add("high", HAVING.format(150), "changelog", mode="net", path=str(logs / "high"))
    running.remove("key0")
    with pytest.raises(OptionError, match="no query nothing"):
        running.remove("nothing")
    kept = answer(logs / "key0", 99)
    for number in (2, 3):
        write_batch(tmp_path / "in", number, parts[number])
        running.process_all()
    assert running.query.runId == run
    last = running.query.lastProgress["batchId"]
    for name, sql in (("key9", BY_KEY.format(9)), ("high", HAVING.format(150)), ("key1", BY_KEY.format(1))):
        assert answer(logs / name, last) == _alone(sql, rows, 3), name
    assert answer(logs / "key0", last) == kept
    assert sorted(running.queries) == sorted(
        [f"key{n}" for n in (*range(1, 8), 9)] + [f"above{n}" for n in range(8)] + ["high"]
    )
    running.stop()

    again = _job(engine, logs, checkpoint, "net", range(1, 7))
    again.add("key9", BY_KEY.format(9), "changelog", mode="net", path=str(logs / "key9"))
    running = again.start()
    for number in (4, 5):
        write_batch(tmp_path / "in", number, parts[number])
        running.process_all()
    last = running.query.lastProgress["batchId"]
    for name, sql in (("key9", BY_KEY.format(9)), ("key1", BY_KEY.format(1)), ("above2", HAVING.format(81))):
        assert answer(logs / name, last) == _alone(sql, rows, 5), name
    running.stop()
    manifest = json.loads((checkpoint / "job" / "g1" / "sash-job.json").read_text())
    assert len(manifest["templates"]) == 2
    assert "high" not in [query["name"] for query in manifest["queries"]]
