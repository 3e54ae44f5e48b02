from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.errors import CatalogError
from sash.plan.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, TINYINT, Field
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import Batch, typed_schema
from sash.spark.sinks.changelog import ChangeLog
from tests.spark.files import SQL, batches_of, expected, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark


def test_the_log_is_the_change_stream_however_often_batches_come(spark: SparkSession, tmp_path: Path) -> None:
    rows, log = made_up_rows(3), tmp_path / "log"
    query = file_engine(spark, tmp_path / "in").sql(SQL)
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        running = query.start(
            "changelog", trigger="available_now", checkpoint=str(tmp_path / "checkpoint"), path=str(log)
        )
        running.await_termination()
        running.stop()
    wanted = expected(SQL, rows)
    columns = ["_op", "_ts", "k", "n", "total"]
    by_spark = spark.read.parquet(str(log)).select(*columns).collect()
    assert Counter(tuple(row) for row in by_spark) == wanted
    by_pandas = pd.read_parquet(log)
    assert Counter(map(tuple, by_pandas[columns].itertuples(index=False))) == wanted
    assert sorted(by_pandas["batch"].unique().tolist()) == [0, 1, 2]

    again = query.start("changelog", trigger="available_now", path=str(log))
    with pytest.raises(CatalogError, match="changelog of another query"):
        again.await_termination()


def test_a_batch_that_is_written_again_replaces_itself(spark: SparkSession, tmp_path: Path) -> None:
    output = OutputSpec(file_engine(spark, tmp_path / "in").sql(SQL).schema, BIGINT, "changes", None, "one")
    writer = ChangeLog({"path": str(tmp_path / "log")}).open(output)

    def write(rows: DataFrame, number: int) -> None:
        writer(Batch.of_frame(rows, rows.count()), number)

    frame = spark.createDataFrame([("+", 1, "a", 1, 1)], "_op string, _ts long, k string, n long, total long")
    write(frame, 0)
    (tmp_path / "log" / ".batch-1").mkdir()  # a writer that was killed
    (tmp_path / "log" / ".batch-1" / "half.parquet").write_bytes(b"half")
    write(frame, 1)
    write(frame, 1)
    write(frame.limit(0), 2)
    assert sorted(path.name for path in (tmp_path / "log").glob("batch=*")) == ["batch=0", "batch=1"]
    assert pd.read_parquet(tmp_path / "log").shape == (2, 6)


def test_differential_the_driver_and_spark_write_alike(spark: SparkSession, tmp_path: Path) -> None:
    schema = (
        Field("tiny", TINYINT),
        Field("price", pa.decimal128(12, 2)),
        Field("at", TIMESTAMP),
        Field("day", DATE),
        Field("blob", BINARY),
        Field("name", STRING),
        Field("x", DOUBLE),
        Field("yes", BOOLEAN),
    )
    output = OutputSpec(schema, TIMESTAMP, "changes", None, "one")
    rows = [
        ("+", 10**15, 1, Decimal("1.25"), 10**15 + 1, 3, b"\x00a", "é", 0.5, True),
        ("-", -1, None, None, None, None, None, None, None, None),
    ]
    names = [field.name for field in typed_schema(schema, TIMESTAMP)]
    types = [field.dtype for field in typed_schema(schema, TIMESTAMP)]
    table = pa.table([pa.array(c, t) for c, t in zip(zip(*rows, strict=True), types, strict=True)], names=names)
    batch = Batch.of_table(table, schema, TIMESTAMP, spark)
    assert batch.frame.toArrow().cast(table.schema).equals(table)
    write = ChangeLog({"path": str(tmp_path / "log")}).open(output)
    write(batch, 0)
    write(Batch(2, False, lambda: table, lambda: batch.frame, spark), 1)
    here, spark_s = (pq.read_schema(next((tmp_path / "log" / f"batch={n}").glob("*.parquet"))) for n in (0, 1))
    assert here.remove_metadata() == spark_s.remove_metadata()
    found = spark.read.parquet(str(tmp_path / "log"))
    assert found.drop("batch").schema.simpleString() == batch.frame.schema.simpleString()
    assert found.where("batch = 0").drop("batch").exceptAll(found.where("batch = 1").drop("batch")).isEmpty()
    assert pd.read_parquet(tmp_path / "log").shape == (4, 11)
