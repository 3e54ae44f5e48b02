"""Strategies on Spark: the same answers, and the changes that input-triggered withholds until a row arrives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.oracle.cases import BY_NAME
from tests.oracle.check import run
from tests.spark.files import (
    SQL,
    FolderSink,
    batches_of,
    expected,
    file_engine,
    made_up_rows,
    write_batch,
)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["aggregate_over_aggregate"])
def test_input_triggered_releases_the_same_changes_on_spark_and_in_simulation(spark: SparkSession, name: str) -> None:
    local = run(BY_NAME[name], strategy="input-triggered", shards=1, batch=4)
    released = [change for change in local.changes if change.released is not None]
    assert 0 < len(released) < len(local.changes)
    on_spark = run(BY_NAME[name], strategy="input-triggered", runtime="spark", shards=1, batch=4)
    assert listed(on_spark.changes) == listed(released)


def listed(changes: Any) -> Counter[tuple[Any, ...]]:
    return Counter((change.ts, change.op, *change.row.values()) for change in changes)


def test_the_last_batch_of_what_is_available_lets_no_time_wait(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink = made_up_rows(2), FolderSink(tmp_path / "out")
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    query = file_engine(spark, tmp_path / "in").sql(SQL, strategy="piggyback", patience="1 second")
    running = query.start(sink, trigger="available_now", checkpoint=str(tmp_path / "checkpoint"))
    running.await_termination()
    running.stop()
    assert sink.read() == expected(SQL, rows)
