"""Of a batch that is too large for the driver, only what does not cancel out comes there, for the history of the job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sash.plan.options import Mode
from sash.plan.types import Field
from sash.spark.job_batch import JobMessages, _batch_of
from sash.spark.messages import OUTPUT
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import NetEffect, Unpack, whole_effect
from sash.state.changes import ChangeBatch
from sash.state.encoding import encode
from sash.time import FOREVER

SCHEMA = (Field("k", pa.string()), Field("n", pa.int64()))
UNPACK = Unpack(SCHEMA, pa.timestamp("us"))


def blob(*given: tuple[str, int, str, int]) -> bytes:
    """Changes as a shard sends them."""
    sign, ts, k, n = zip(*given, strict=True)
    signs = np.array([1 if one == "+" else -1 for one in sign], np.int8)
    times, ends = np.array(ts, np.int64), np.full(len(ts), FOREVER)
    data: bytes = encode(ChangeBatch(times, ends, signs, (pa.array(k), pa.array(n, pa.int64())))).to_pybytes()
    return data


FIRST = blob(("+", 1, "a", 1), ("+", 5, "b", 1), ("-", 7, "a", 1), ("+", 7, "a", 2)), blob(("-", 9, "b", 1))
SECOND = (blob(("-", 3, "c", 8), ("+", 4, "c", 9)),)


def task(blobs: tuple[bytes, ...], mode: Mode, most: int) -> pa.Table:
    key = (0,) if mode == "upsert" else None
    (batch,) = pa.table({"blob": pa.array(blobs, pa.binary())}).to_batches()
    return pa.Table.from_batches(NetEffect(UNPACK, mode, key, most)([batch]))


def listed(table: pa.Table | None) -> list[tuple[str, str, int]]:
    assert table is not None
    return [(row["_op"], row["k"], row["n"]) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("mode", "left"),
    [
        ("changes", [("-", "c", 8), ("+", "c", 9), ("+", "a", 2)]),
        ("upsert", [("+", "c", 9), ("+", "a", 2), ("-", "b", 1)]),
    ],
)
def test_what_cancels_out_within_a_task_stays_there(mode: Mode, left: list[tuple[str, str, int]]) -> None:
    parts = [task(FIRST, mode, 2), task(SECOND, mode, 2)]
    assert sorted(listed(whole_effect(pa.concat_tables(parts)))) == sorted(left)
    parts[1] = task(SECOND, mode, 0)
    assert parts[1].num_rows == 1
    assert whole_effect(pa.concat_tables(parts)) is None


@pytest.mark.spark
def test_a_large_batch_of_spark_has_its_net_effect(spark: SparkSession) -> None:
    rows = [(OUTPUT, 0, bytearray(one)) for one in (*FIRST, *SECOND)] + [(OUTPUT, 1, bytearray(SECOND[0]))]
    frame = spark.createDataFrame(rows, "channel int, output int, blob binary").coalesce(1)
    output: Any = SimpleNamespace(spec=OutputSpec(SCHEMA, pa.timestamp("us"), "net", None, "x"), position=0)
    messages = JobMessages(large={0})
    batch = _batch_of(output, frame, messages)
    assert (batch.rows, batch.small) == (7, False)
    assert sorted(listed(batch.net_effect("net", None, 10))) == [("+", "a", 2), ("+", "c", 9), ("-", "c", 8)]
    assert batch.net_effect("net", None, 1) is None
