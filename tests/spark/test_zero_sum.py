"""The zero-sum test on Spark: two streams, shuffled each on its own, balance to nothing at every instant."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.engine import Engine
from sash.spark.replay import read_changes
from sash.state.changes import ChangeBatch, concat
from sash.time import FOREVER
from tests.test_zero_sum import BATCH, SQL, TRANSFERS, check, transfers

pytestmark = pytest.mark.spark
TYPES = [pa.int64(), pa.int64()]
FAR = 3_600_000_000
"""A time after the last expiry."""


def test_zero_sum_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    streams = transfers()
    engine = Engine(spark, shards=2)
    for name, (ts, account) in streams.items():
        folder = tmp_path / name
        folder.mkdir()
        # The last row of each stream, after everything else has expired, moves its clock to the end.
        for number, start in enumerate(range(0, TRANSFERS + BATCH, BATCH)):
            rows = pa.table({"ts": ts[start : start + BATCH], "account": account[start : start + BATCH]})
            if start >= TRANSFERS:
                rows = pa.table({"ts": [FAR + 10_000_000], "account": [0]}, schema=rows.schema)
            path = folder / f"{number:02d}.parquet"
            pq.write_table(rows.append_column("amount", pa.array([1] * rows.num_rows, pa.int64())), path)
            os.utime(path, (10**9 + number, 10**9 + number))
        reader = spark.readStream.schema("ts long, account long, amount long")
        files = reader.option("maxFilesPerTrigger", 1).option("maxFileAge", "36500d").parquet(str(folder))
        engine.stream(name, files, slack="10 seconds")
    batches: dict[int, ChangeBatch] = {}

    def collect(batch: DataFrame, number: int) -> None:
        batches[number] = read_changes(batch.toArrow(), TYPES)

    running = engine.sql(SQL).start(collect, trigger="available_now")
    running.await_termination()
    assert running.progress()["total_late"] == 0
    running.stop()
    changes = concat([batches[number] for number in sorted(batches)]).sorted()
    assert int(FOREVER) > changes.ts.max()
    check(changes, streams)
