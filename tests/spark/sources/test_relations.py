"""Relations that change while a query runs on Spark: streams of updates across restarts, and refreshed tables."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.engine import Engine
from sash.testing import replay
from tests.spark.files import FolderSink, Rows, batches_of, file_engine, made_up_rows, write_batch

pytestmark = pytest.mark.spark

NAMES = pa.schema([("ts", pa.int64()), ("_op", pa.string()), ("k", pa.string()), ("name", pa.string())])
BANDS = pa.schema(
    [("ts", pa.int64()), ("_op", pa.string()), ("id", pa.int64()), ("v", pa.int64()), ("band", pa.string())]
)
SQL = (
    "SELECT n.name, b.band, COUNT(*) AS c FROM s [RANGE 15 MILLISECONDS] JOIN names n ON s.k = n.k "
    "JOIN bands b ON s.v = b.v GROUP BY n.name, b.band"
)


def made_up_updates(rows: Rows) -> tuple[Rows, Rows]:
    """Updates of both relations between the times of the rows, made no earlier than the batch they come with begins."""
    rnd = random.Random(7)
    names, bands = [], []
    for batch in batches_of(rows):
        for row in batch[::4]:
            k = f"k{rnd.randint(0, 9)}"
            names.append({"ts": row["ts"] + 7, "_op": rnd.choice("+++-"), "k": k, "name": rnd.choice("xyz")})
            update = {"id": rnd.randint(0, 5), "v": rnd.randint(0, 9), "band": rnd.choice("pq")}
            bands.append({"ts": row["ts"] + 11, "_op": rnd.choice("+++-"), **update})
    return names, bands


def write_updates(directory: Path, number: int, rows: Rows, schema: pa.Schema) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f".{number}"
    pq.write_table(pa.Table.from_pylist(rows, schema), draft)
    os.utime(draft, (10**9 + number, 10**9 + number))
    draft.replace(directory / f"{number}.parquet")


def updates(spark: SparkSession, directory: Path, ddl: str) -> DataFrame:
    directory.mkdir(parents=True, exist_ok=True)
    return (
        spark.readStream.schema(ddl)
        .option("maxFilesPerTrigger", 1)
        .option("maxFileAge", "36500d")
        .parquet(str(directory))
    )


def engine_of(spark: SparkSession, home: Path) -> Engine:
    engine = file_engine(spark, home / "in")
    names = updates(spark, home / "names", "ts long, _op string, k string, name string")
    bands = updates(spark, home / "bands", "ts long, _op string, id long, v long, band string")
    engine.relation("names", names, key="k", retroactive=False, changes=True)
    engine.relation("bands", bands, key="id", changes=True)
    return engine


def test_differential_updates_restarted_after_every_batch(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink = made_up_rows(3), FolderSink(tmp_path / "out")
    names, bands = made_up_updates(rows)
    parts = len(batches_of(rows))
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        for given, folder, schema in ((names, "names", NAMES), (bands, "bands", BANDS)):
            size = len(given) // parts
            write_updates(tmp_path / folder, number, given[number * size : (number + 1) * size], schema)
        running = (
            engine_of(spark, tmp_path).sql(SQL).start(sink, trigger="available_now", checkpoint=str(tmp_path / "c"))
        )
        running.await_termination()
        assert running.progress()["total_late"] == 0
        assert (running.progress()["total_rebuilt"] > 0) == (number > 0)
        running.stop()
    last = max(row["ts"] for row in rows)
    keys = {"names": ["k"], "bands": ["id"]}
    local = replay(SQL, {"s": rows}, {"bands": bands}, nrrs={"names": names}, keys=keys, unit="us", until=last - 1)
    expected = Counter((change.op, change.ts, *change.row.values()) for change in local.changes)
    assert len(expected) > 50
    assert sink.read() == expected


def test_a_table_is_refreshed(spark: SparkSession, tmp_path: Path) -> None:
    contents: list[tuple[str, str]] = [("k1", "one"), ("k2", "two")]
    rows: list[dict[str, Any]] = [{"ts": 1_000 * n, "k": f"k{n % 3}", "v": n} for n in range(12)]
    sink = FolderSink(tmp_path / "out")
    engine = file_engine(spark, tmp_path / "in")
    engine.relation("t", lambda: spark.createDataFrame(contents, "k string, name string"), key="k", refresh="1 day")
    query = engine.sql("SELECT s.v, t.name FROM s [RANGE 1 SECOND] JOIN t ON s.k = t.k")
    write_batch(tmp_path / "in", 0, rows[:6])
    running = query.start(sink, trigger="100 milliseconds", checkpoint=str(tmp_path / "c"))
    try:
        running.process_all()
        assert running.refresh() == 0
        contents[:] = [("k1", "uno"), ("k0", "zero")]
        assert running.refresh() == 3
        running.process_all()
        write_batch(tmp_path / "in", 1, rows[6:9])
        running.process_all()
    finally:
        running.stop()
    contents.remove(("k0", "zero"))
    write_batch(tmp_path / "in", 2, rows[9:])
    running = query.start(sink, trigger="available_now", checkpoint=str(tmp_path / "c"))
    running.await_termination()
    assert running.progress()["total_late"] == 0
    running.stop()
    changes = sorted(sink.read().elements(), key=lambda change: (change[1], change[0] == "+"))
    answer: dict[int, Counter[Any]] = {}
    bag: Counter[Any] = Counter()
    for op, ts, *row in changes:
        bag[tuple(row)] += 1 if op == "+" else -1
        answer[ts] = Counter(+bag)
    # The first reading is valid from the start, the second from the clock at its arrival (5,000), the third from 8,000 on.
    assert answer[4_000] == Counter({(1, "one"): 1, (4, "one"): 1, (2, "two"): 1})
    assert answer[5_000] == Counter({(0, "zero"): 1, (3, "zero"): 1, (1, "uno"): 1, (4, "uno"): 1})
    assert answer[max(answer)] == Counter({(v, "uno"): 1 for v in (1, 4, 7, 10)})


@pytest.mark.parametrize("small", [0, 100])
def test_a_table_without_changes_is_read_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr("sash.spark.legs.SMALL", small)
    schema = pa.schema([("k", pa.string()), ("name", pa.string())])
    pq.write_table(
        pa.Table.from_pylist([{"k": "k1", "name": "one"}, {"k": "k2", "name": "two"}], schema), tmp_path / "t"
    )
    rows: Rows = [{"ts": 1_000 * n, "k": f"k{n % 3}", "v": n} for n in range(6)]
    sink = FolderSink(tmp_path / "out")
    engine = file_engine(spark, tmp_path / "in")
    engine.relation("t", spark.read.parquet(str(tmp_path / "t")))
    write_batch(tmp_path / "in", 0, rows[:3])
    running = engine.sql("SELECT s.v, t.name FROM s [RANGE 1 SECOND] JOIN t ON s.k = t.k").start(sink)
    try:
        running.process_all()
        pq.write_table(pa.Table.from_pylist([{"k": "k0", "name": "zero"}], schema), tmp_path / "t")
        write_batch(tmp_path / "in", 1, rows[3:])
        running.process_all()
    finally:
        running.stop()
    assert sink.read() == Counter({("+", 1_000, 1, "one"): 1, ("+", 2_000, 2, "two"): 1, ("+", 4_000, 4, "one"): 1})
