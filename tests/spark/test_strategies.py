"""Strategies on Spark: the same answers, and the changes that input-triggered withholds until a row arrives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sash.plan.options import Strategy
from sash.testing import Change, replay
from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle, run
from tests.spark.files import (
    ROWS_PER_BATCH,
    SQL,
    FolderSink,
    Rows,
    batches_of,
    expected,
    file_engine,
    made_up_rows,
    write_batch,
)

pytestmark = pytest.mark.spark

SAMPLE = (
    ("negative-tuple", "distinct_over_join"),
    ("hybrid", "distinct_over_join"),
    ("time-message", "except_all_rows"),
    ("piggyback", "distinct_over_join"),
    ("re-evaluation", "distinct_over_join"),
)
TWO_STAGES = (
    "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 60 MILLISECONDS] WHERE v > 2 GROUP BY k) "
    "GROUP BY n"
)


@pytest.mark.parametrize(("strategy", "name"), SAMPLE)
def test_oracle_on_spark(spark: SparkSession, strategy: str, name: str) -> None:
    assert_oracle(BY_NAME[name], runtime="spark", strategy=strategy, batch=8)


@pytest.mark.parametrize("name", ["aggregate_over_aggregate"])
def test_input_triggered_releases_the_same_changes_on_spark_and_in_simulation(spark: SparkSession, name: str) -> None:
    local = run(BY_NAME[name], strategy="input-triggered", shards=1, batch=4)
    released = [change for change in local.changes if change.released is not None]
    assert 0 < len(released) < len(local.changes)
    on_spark = run(BY_NAME[name], strategy="input-triggered", runtime="spark", shards=1, batch=4)
    assert listed(on_spark.changes) == listed(released)


def listed(changes: Any) -> Counter[tuple[Any, ...]]:
    return Counter((change.ts, change.op, *change.row.values()) for change in changes)


def restarted_after_every_batch(
    spark: SparkSession, folder: Path, sql: str, strategy: Strategy, rows: Rows
) -> FolderSink:
    """What a query has written that was stopped after every batch, and rebuilt from its checkpoint."""
    sink = FolderSink(folder / "out")
    query = file_engine(spark, folder / "in").sql(sql, strategy=strategy)
    rebuilt = 0
    for number, batch in enumerate(batches_of(rows)):
        write_batch(folder / "in", number, batch)
        running = query.start(sink, trigger="available_now", checkpoint=str(folder / "checkpoint"))
        running.await_termination()
        rebuilt += running.progress()["total_rebuilt"]
        running.stop()
    assert rebuilt > 0
    return sink


@pytest.mark.parametrize("sql", [TWO_STAGES])
def test_differential_input_triggered_restarted_after_every_batch(
    spark: SparkSession, tmp_path: Path, sql: str
) -> None:
    rows = made_up_rows(4)
    sink = restarted_after_every_batch(spark, tmp_path, sql, "input-triggered", rows)
    in_time = replay(sql, {"s": rows}, unit="us", until=rows[-1]["ts"] - 1, strategy="input-triggered")
    assert not sink.read() - Counter(map(written, in_time.changes))
    first = [written(change) for change in in_time.changes if change.ts < rows[-1]["ts"] - 20_000]
    assert len(first) > 50
    assert not Counter(first) - sink.read()


def test_differential_re_evaluation_restarted_after_every_batch(spark: SparkSession, tmp_path: Path) -> None:
    """The valid rows are in the log; the last answer is computed from them again, so nothing is repeated or lost."""
    rows = made_up_rows(4)
    sink = restarted_after_every_batch(spark, tmp_path, TWO_STAGES, "re-evaluation", rows)
    expected = replay(TWO_STAGES, {"s": rows}, unit="us", until=rows[-1]["ts"] - 1)
    assert sink.read() == Counter(map(written, expected.changes))


def written(change: Change) -> tuple[Any, ...]:
    return (change.op, int(change.ts), *change.row.values())


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        (SQL, {"strategy": "piggyback", "patience": "6 milliseconds"}),
        (TWO_STAGES, {"strategy": "time-probing", "probe": "7 milliseconds"}),
    ],
    ids=["piggyback", "time-probing"],
)
def test_what_is_learnt_and_waits_survives_a_restart_after_every_batch(
    spark: SparkSession, tmp_path: Path, sql: str, options: dict[str, Any]
) -> None:
    """Every run has an arena of its own, so all that it goes on with is from the checkpoint."""
    rows, sink = made_up_rows(5), FolderSink(tmp_path / "out")
    query = file_engine(spark, tmp_path / "in").sql(sql, **options)
    rebuilt = 0
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        running = query.start(sink, checkpoint=str(tmp_path / "checkpoint"))
        running.process_all_available()
        rebuilt += running.progress()["total_rebuilt"]
        running.stop()
    assert rebuilt > 0
    lengths = {name: int(str(text).split()[0]) * 1000 for name, text in options.items() if name != "strategy"}
    local = released_by_batch(sql, rows, strategy=options["strategy"], **lengths)
    assert local != released_by_batch(sql, rows, strategy="auto"), "some changes are late"
    found = [pq.read_table(sink.directory / f"{number}.parquet").to_pylist() for number in range(5)]
    assert [Counter(tuple(row.values()) for row in batch) for batch in found] == local


def released_by_batch(sql: str, rows: Any, **options: Any) -> list[Counter[tuple[Any, ...]]]:
    """The changes that each micro-batch of a local replay releases."""
    result = replay(sql, {"s": rows}, unit="us", until=rows[-1]["ts"], batch=ROWS_PER_BATCH, **options)
    return [Counter(written(change) for change in result.changes if change.batch == number) for number in range(5)]


def test_the_last_batch_of_what_is_available_lets_no_time_wait(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink = made_up_rows(2), FolderSink(tmp_path / "out")
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    query = file_engine(spark, tmp_path / "in").sql(SQL, strategy="piggyback", patience="1 second")
    running = query.start(sink, trigger="available_now", checkpoint=str(tmp_path / "checkpoint"))
    running.await_termination()
    running.stop()
    assert sink.read() == expected(SQL, rows)
