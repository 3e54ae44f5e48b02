"""Queries that fail: each error is one line with the cause, and its log has the full trace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.errors import BadRowError, QueryFailedError, SashError

pytestmark = pytest.mark.spark
COLUMNS = "ts TIMESTAMP, item INT, price DOUBLE"
QUERY = "SELECT item, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item"
GOOD = "ts,item,price\n2026-01-01 12:00:00,1,2.5\n"


def ignore(batch: Any, number: int) -> None:
    """A sink that writes nothing."""


def fail(
    spark: SparkSession,
    folder: Path,
    sql: str = QUERY,
    sink: str | Callable[[Any, int], None] = ignore,
    format: str = "csv",  # noqa: A002
) -> SashError:
    """The error of a query over the files of the folder."""
    with Engine(spark) as engine:
        reader = spark.readStream.schema(COLUMNS).options(header=True, enforceSchema=False)
        engine.stream("sales", reader.format(format).load(str(folder)))
        running = engine.sql(sql).start(sink, trigger="available_now")
        with pytest.raises(SashError) as caught:
            running.await_termination()
        assert running.exception() is caught.value
    error = caught.value
    assert "\n" not in str(error)
    assert error.__cause__ is None
    assert error.__notes__ == [f"The full trace is in {error.log}"]
    assert "Traceback (most recent call last)" in Path(error.log or "").read_text()
    return error


def test_a_row_without_a_time_is_shown_with_its_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text("ts,item,price\nyesterday,7,1.5\n")
    error = fail(spark, tmp_path)
    assert isinstance(error, BadRowError)
    assert str(error).startswith(
        "stream sales has a row whose time column ts is NULL or cannot be read: (ts NULL, item 7, price 1.5) in "
        f"{tmp_path}/b.csv. Correct the file"
    )
    assert error.row == f"(ts NULL, item 7, price 1.5) in {tmp_path}/b.csv"


def test_a_header_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,ts,price\n1,2026-01-01 12:00:00,2.5\n")
    error = fail(spark, tmp_path, sink="noop")
    assert isinstance(error, QueryFailedError)
    assert (
        f"{tmp_path}/a.csv has the columns (item, ts, price), but the stream is declared with (ts, item, price)"
        in str(error)
    )


def test_an_expression_that_fails(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text(GOOD.replace(",1,", ",0,"))
    error = fail(spark, tmp_path, "SELECT SUM(1 / item) AS total FROM sales [RANGE 1 MINUTE]")
    assert str(error).startswith("[DIVIDE_BY_ZERO] Division by zero.")
    assert "SQLSTATE" not in str(error)
    assert "DIVIDE_BY_ZERO" not in capfd.readouterr().err.replace("ERROR MicroBatchExecution", "")


def test_a_function_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(batch: Any, number: int) -> None:
        raise ValueError(f"no room for batch {number}")

    (tmp_path / "a.csv").write_text(GOOD)
    error = fail(spark, tmp_path, sink=refuse)
    assert str(error) == "ValueError: no room for batch 0"
    assert "in refuse" in Path(error.log or "").read_text()


def test_a_damaged_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no Parquet at all")
    error = fail(spark, tmp_path, format="parquet")
    assert f"cannot read file:{tmp_path}/a.parquet: it is no complete Parquet file" in str(error)


def test_late_rows_are_counted_by_stream(spark: SparkSession, tmp_path: Path) -> None:
    for number, minute in enumerate((10, 20, 5)):
        file = tmp_path / f"{number}.csv"
        file.write_text(GOOD.replace("12:00", f"12:{minute:02d}"))
        os.utime(file, (10**9 + number, 10**9 + number))
    with Engine(spark) as engine:
        reader = spark.readStream.schema(COLUMNS).options(header=True, maxFilesPerTrigger=1)
        engine.stream("sales", reader.csv(str(tmp_path)))
        running = engine.sql(QUERY).start("noop", trigger="available_now")
        running.await_termination()
        batches = [batch["streams"]["sales"] for batch in running.drain_progress()]
    assert [batch["rows_in"] for batch in batches] == [1, 1, 1]
    assert [batch["late"] for batch in batches] == [0, 0, 1]
    assert batches[2]["late_by"] == 15 * 60 * 1_000_000
    assert batches[2]["watermark"] == batches[1]["watermark"]
