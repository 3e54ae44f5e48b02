"""Parked queries whose operators stood still: how they go on, and what their sinks get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.job import Job
from sash.running_job import RunningJob
from tests.spark.files import (
    SQL,
    TWO_STAGES,
    FolderSink,
    Rows,
    batches_of,
    expected,
    file_engine,
    made_up_rows,
    write_batch,
)

pytestmark = pytest.mark.spark

OPERATOR = "SELECT k, 100 / (MAX(v) - 20) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k"
LEG = "SELECT k, SUM(100 / (v - 20)) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k"
TWO_LEVELS = (
    "SELECT n, COUNT(*) AS groups FROM "
    "(SELECT k, 100 DIV (MAX(v) - 20) AS n FROM s [RANGE 60 MILLISECONDS] GROUP BY k) GROUP BY n"
)


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    with file_engine(spark, tmp_path / "in") as made:
        yield made


class Runs:
    """A job with a query that is parked, and another one, over batches of rows of which one may be bad."""

    def __init__(self, engine: Engine, home: Path, sql: str, batches: int, **options: Any) -> None:
        self.engine, self.home, self.sql, self.options = engine, home, sql, options
        self.clean = made_up_rows(batches)
        self.rows: Rows = [dict(row) for row in self.clean]
        self.good, self.sink = FolderSink(home / "good"), FolderSink(home / "parked")
        self.written = 0
        self.running: RunningJob = self.job().start()

    def job(self) -> Job:
        made = self.engine.job(checkpoint=self.home / "checkpoint")
        made.add("good", SQL, self.good)
        made.add("parked", self.sql, self.sink, on_error="suspend", **self.options)
        return made

    def run(self, count: int) -> None:
        for batch in batches_of(self.rows)[self.written : self.written + count]:
            write_batch(self.home / "in", self.written, batch)
            self.written += 1
            self.running.process_all()

    def start_again(self) -> None:
        self.running.stop()
        self.running = self.job().start()

    @property
    def query(self) -> Any:
        return self.running.queries["parked"]

    def check(self, resumed_at: int) -> None:
        """The other query has its changes; the sink has the answer, and since the resumption every change of it."""
        assert self.good.read() == expected(SQL, self.rows)
        got, wanted = self.sink.read(), expected(self.sql, self.clean)
        assert answer(got) == answer(wanted)
        assert since(got, resumed_at) == since(wanted, resumed_at)


def answer(changes: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """What the changes add up to."""
    found: Counter[tuple[Any, ...]] = Counter()
    for (op, _, *row), count in changes.items():
        found[tuple(row)] += count if op == "+" else -count
    assert all(count >= 0 for count in found.values())
    return +found


def since(changes: Counter[tuple[Any, ...]], instant: int) -> Counter[tuple[Any, ...]]:
    return Counter({change: count for change, count in changes.items() if change[1] > instant})


@pytest.mark.parametrize("sql", [OPERATOR, TWO_LEVELS])
def test_operators_that_fail_again_are_rebuilt_once_the_bad_row_has_left(
    engine: Engine, tmp_path: Path, sql: str
) -> None:
    runs = Runs(engine, tmp_path, sql, 9)
    runs.rows[50]["v"] = 20
    runs.run(3)
    assert "zero" in runs.query.state.lower()
    assert runs.sink.read() == expected(sql, runs.clean[:40])
    runs.query.resume()
    runs.run(1)
    assert "zero" in runs.query.state.lower(), "the bad row is still in the window"
    runs.start_again()
    runs.run(2)
    runs.query.resume()
    runs.run(1)
    assert runs.query.state == "running"
    assert runs.query.progress()["resumed"].startswith("resumed with a net difference; 5 batches were not delivered")
    resumed_at = runs.rows[runs.written * 40 - 1]["ts"]
    runs.start_again()
    runs.run(2)
    runs.check(resumed_at)


def test_past_the_bound_of_its_outbox_a_query_resumes_with_a_net_difference(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs = Runs(engine, tmp_path, TWO_STAGES, 9, max_state=1, outbox=1)
    runs.run(6)
    assert "exceeds MAX STATE" in runs.query.state
    assert "more than its outbox allows" in caplog.text
    runs.running.started.run.batches.most_state = {}
    runs.query.resume()
    runs.run(1)
    assert "net difference; 5 batches" in runs.query.progress()["resumed"]
    resumed_at = runs.rows[runs.written * 40 - 1]["ts"]
    runs.run(2)
    runs.check(resumed_at)


def test_an_expression_above_a_source_leaves_the_answer_incomplete_for_its_window(
    engine: Engine, tmp_path: Path
) -> None:
    runs = Runs(engine, tmp_path, LEG, 8)
    runs.rows[50]["v"] = 20
    runs.run(3)
    assert "zero" in runs.query.state.lower()
    runs.query.resume()
    runs.run(1)
    assert runs.query.state == "running, and not yet complete"
    assert runs.query.progress()["complete"] is False
    assert "complete again after its windows" in runs.query.progress()["resumed"]
    runs.start_again()
    runs.run(4)
    assert runs.query.state == "running"
    runs.check(runs.rows[7 * 40]["ts"] + 1)
