"""MAX JUMP: rows far in the future do not move the watermark; they are counted, and kept where bad rows are."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.errors import OptionError, SashError
from sash.spark.job_manifest import DEFAULT_NAME
from sash.spark.sources.history import Rereading
from sash.time import DAY, MINUTE
from tests.spark.files import (
    ROWS_PER_BATCH,
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

CENTURY = 200 * 365 * DAY
"""An instant in the 22nd century, in microseconds."""


def write_with(directory: Path, rows: Rows, ahead: dict[int, int]) -> None:
    """Write the batches of the rows; in those of `ahead` the row in the middle is followed by one of that time."""
    for number, batch in enumerate(batches_of(rows)):
        middle = len(batch) // 2
        added = [{"ts": ahead[number], "k": "k1", "v": 9}] if number in ahead else []
        write_batch(directory, number, [*batch[:middle], *added, *batch[middle:]])


def test_differential_a_row_of_another_century_changes_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    rows, first, second = made_up_rows(4), FolderSink(tmp_path / "first"), FolderSink(tmp_path / "second")
    write_with(tmp_path / "in", rows, {1: CENTURY, 2: CENTURY + 1})
    with file_engine(spark, tmp_path / "in", max_jump="1 day", bad_rows_into=str(tmp_path / "bad")) as engine:
        job = engine.job(checkpoint=tmp_path / "checkpoint")
        job.add("first", SQL, first)
        job.add("second", TWO_STAGES, second)
        running = job.start()
        running.process_all()
        progress = running.progress()
        (text,) = running.stream_warnings(running.drain_progress())
    assert first.read() == expected(SQL, rows)
    assert second.read() == expected(TWO_STAGES, rows)
    totals = {"rows_in": len(rows) + 2, "bad": 0, "ahead": 2, "late": 0}
    assert progress["total_streams"] == {"s": totals}
    assert (progress["total_ahead"], progress["total_bad"], progress["total_late"]) == (2, 0, 0)
    assert text.startswith("stream s: 2 rows were more than MAX JUMP '24 hours' in the future and were dropped")
    kept = pd.read_parquet(tmp_path / "bad").sort_values("batch")
    assert list(kept["reason"]) == ["ahead", "ahead"]
    assert [json.loads(row)["ts"] for row in kept["row"]] == [CENTURY, CENTURY + 1]
    assert [moment.year for moment in kept["time"]] == [2169, 2169]


def test_without_the_limit_such_a_row_makes_those_after_it_late(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(3)
    write_with(tmp_path / "in", rows, {1: CENTURY})
    with file_engine(spark, tmp_path / "in") as engine:
        running = engine.sql(SQL).start(FolderSink(tmp_path / "out"))
        running.process_all()
        assert running.progress()["total_late"] > 0


def test_a_query_alone_drops_and_counts_them_too(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink = made_up_rows(3), FolderSink(tmp_path / "out")
    write_with(tmp_path / "in", rows, {1: CENTURY})
    with file_engine(spark, tmp_path / "in", max_jump="1 day") as engine:
        running = engine.sql(SQL).start(sink)
        running.process_all()
        assert running.progress()["total_ahead"] == 1
    assert sink.read() == expected(SQL, rows)


def test_a_kept_window_has_none_of_them(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(2)
    write_with(tmp_path / "in", rows, {0: CENTURY})
    with file_engine(spark, tmp_path / "in", max_jump="1 day") as engine:
        kept = engine.keep("s", "1 hour", "10 milliseconds", path=str(tmp_path / "store"))
        kept.process_all()
        answer = engine.snapshot("SELECT COUNT(*) AS n, MAX(ts) AS last FROM s [RANGE 1 HOUR]").to_pylist()
    whole = [row["ts"] for row in rows if row["ts"] < rows[-1]["ts"] // 10_000 * 10_000]
    assert answer == [{"n": len(whole), "last": whole[-1]}]


class FailsIn(FolderSink):
    """A sink that fails in one batch."""

    def __init__(self, directory: Path, number: int) -> None:
        super().__init__(directory)
        self._number = number

    def __call__(self, batch: DataFrame, number: int) -> None:
        if number == self._number:
            raise RuntimeError("the sink failed")
        super().__call__(batch, number)


def test_differential_a_repeated_batch_goes_by_its_recorded_time(spark: SparkSession, tmp_path: Path) -> None:
    """The batch is recorded at the start of 1970. Now, a row of an hour later is in the past; then it was ahead."""
    rows, checkpoint = made_up_rows(3), tmp_path / "checkpoint"
    write_with(tmp_path / "in", rows, {1: 60 * MINUTE})
    with file_engine(spark, tmp_path / "in", max_jump="1 minute") as engine:
        job = engine.job(checkpoint=checkpoint)
        job.add("totals", SQL, FailsIn(tmp_path / "out", 1))
        running = job.start()
        with pytest.raises(SashError, match="the sink failed"):
            running.process_all()
        running.stop()
        (log,) = checkpoint.glob(f"{DEFAULT_NAME}/*/offsets/1")
        version, metadata, *offsets = log.read_text().splitlines()
        metadata = json.dumps({**json.loads(metadata), "batchTimestampMs": 0})
        log.write_text("\n".join([version, metadata, *offsets]))
        log.with_name(f".{log.name}.crc").unlink(missing_ok=True)

        sink = FolderSink(tmp_path / "out")
        job = engine.job(checkpoint=checkpoint)
        job.add("totals", SQL, sink)
        running = job.start()
        running.process_all()
        progress = running.progress()
        running.stop()
    assert (progress["total_ahead"], progress["total_late"]) == (1, 0)
    assert progress["total_rows_in"] == 2 * ROWS_PER_BATCH + 1
    assert sink.read() == expected(SQL, rows)


def test_backfill_of_such_a_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Its rows could be read again, but not the times of the batches that decided about them."""
    rows = made_up_rows(2)
    write_with(tmp_path / "in", rows, {})
    with file_engine(spark, tmp_path / "in", max_jump="1 day", history=Rereading(whole=True)) as engine:
        job = engine.job(checkpoint=tmp_path / "checkpoint")
        job.add("totals", SQL, FolderSink(tmp_path / "out"))
        running = job.start()
        running.process_all()
        running.finish()
        job.add("more", "SELECT k FROM s [RANGE 1 HOUR]", FolderSink(tmp_path / "more"), backfill=True)
        with pytest.raises(OptionError, match="cannot be read again: MAX JUMP dropped rows by the time of their batch"):
            job.start(on_change="apply")
