from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.engine import Engine
from sash.errors import CatalogError, CheckpointError, OptionError, QueryFailedError, SinkError
from sash.metrics import exposition
from tests.spark.files import SQL, TWO_STAGES, FolderSink, batches_of, expected, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

NONE = "SELECT COUNT(*) AS n FROM s [RANGE 60 MILLISECONDS]"
DIVIDES = "SELECT k, SUM(100 / (v - 20)) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k"
"""Fails on a row with v = 20, of which there are none but those that a test adds."""


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
