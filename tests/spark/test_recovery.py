from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import sash.spark.dataflow
import tests.spark.trouble
from tests.cli.command import QUICK
from tests.spark.files import (
    COUNT_WINDOWS,
    SQL,
    TWO_STAGES,
    FolderSink,
    batches_of,
    expected,
    file_engine,
    made_up_rows,
    write_batch,
)
from tests.spark.trouble import TroubledProcessor, WatchedProcessor, order

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("sql", [SQL, TWO_STAGES, COUNT_WINDOWS])
def test_differential_tasks_that_fail_and_workers_that_are_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    cloudpickle.register_pickle_by_value(tests.spark.trouble)
    trouble = tmp_path / "trouble"
    monkeypatch.setattr(
        sash.spark.dataflow, "StageProcessor", lambda *given, **named: TroubledProcessor(trouble, *given, **named)
    )
    rows, sink = made_up_rows(6), FolderSink(tmp_path / "out")
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    orders = [(1, "fail", "within"), (2, "kill", "within"), (3, "fail", "end"), (4, "kill", "end")]
    for given in orders:
        order(trouble, *given)
    running = file_engine(spark, tmp_path / "in").sql(sql).start(sink, trigger="available_now")
    running.await_termination()
    assert not list(trouble.iterdir()), "every fault was injected"
    assert running.progress()["total_rebuilt"] >= len(orders)
    assert sink.read() == expected(sql, rows)
    running.stop()


def test_differential_arenas_that_are_lost_or_left_dirty(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink = made_up_rows(4), FolderSink(tmp_path / "out")
    running = file_engine(spark, tmp_path / "in").sql(SQL).start(sink)
    try:
        for number, batch in enumerate(batches_of(rows)):
            write_batch(tmp_path / "in", number, batch)
            running.process_all()
            shards = sorted(Path(tempfile.gettempdir()).glob(f"blockmgr-*/sash/{running.query.id}/*/*"))
            assert len(shards) == 2
            if number == 1:
                shutil.rmtree(shards[0])
                (shards[1] / "mark").write_text("dirty")
        assert running.progress()["total_rebuilt"] == 2
    finally:
        running.stop()
    assert sink.read() == expected(SQL, rows)


def test_differential_arenas_that_are_lost_after_a_snapshot(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloudpickle.register_pickle_by_value(tests.spark.trouble)
    watch, floor, sql = tmp_path / "watch", 1500, "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY k"
    watch.mkdir()
    monkeypatch.setattr(
        sash.spark.dataflow, "StageProcessor", lambda *given, **named: WatchedProcessor(watch, floor, *given, **named)
    )
    rows, sink = made_up_rows(7), FolderSink(tmp_path / "out")
    running = file_engine(spark, tmp_path / "in").sql(sql).start(sink)
    try:
        for number, batch in enumerate(batches_of(rows)):
            write_batch(tmp_path / "in", number, batch)
            running.process_all()
            if number in (2, 5):
                for shard in Path(tempfile.gettempdir()).glob(f"blockmgr-*/sash/{running.query.id}/*/*"):
                    shutil.rmtree(shard)
        assert running.progress()["total_rebuilt"] == 4
    finally:
        running.stop()
    assert sink.read() == expected(sql, rows)
    headers = {path.name: json.loads(path.read_bytes()) for path in watch.iterdir()}
    states = {name: state for name, header in headers.items() for state in header["stages"].values()}
    sizes = {
        name: sum(chunk[2] for channel in header["channels"].values() for chunk in channel["log"]["chunks"])
        for name, header in headers.items()
    }
    assert len(states) == 14
    assert max(sizes.values()) <= floor
    lost = [(state["snapshot"] is not None, sizes[name] > 0) for name, state in states.items() if name[0] in "25"]
    assert (True, True) in lost, "a snapshot and rows since"
    assert (True, False) in lost, "straight after a snapshot"


def drive(home: Path, master: str, deadly: int | None = None) -> int:
    """Run the driver in a process of its own; returns its exit code."""
    command = [
        sys.executable,
        "-m",
        "tests.spark.driver",
        str(home),
        master,
        *([] if deadly is None else [str(deadly)]),
    ]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    with (home / "log").open("ab") as log:
        return subprocess.run(
            command, cwd=ROOT, env={**os.environ, **QUICK, "PYTHONPATH": paths}, check=False, stdout=log, stderr=log
        ).returncode


def test_differential_a_driver_that_is_killed(tmp_path: Path) -> None:
    rows = made_up_rows(4)
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    order(tmp_path / "trouble", 1, "driver", "end")
    assert drive(tmp_path, "local[2,4]") == -signal.SIGKILL
    assert drive(tmp_path, "local[2,4]", deadly=2) == -signal.SIGKILL
    assert drive(tmp_path, "local[2,4]") == 0
    assert FolderSink(tmp_path / "out").read() == expected(SQL, rows)


def test_differential_on_a_cluster_of_two_executors(tmp_path: Path) -> None:
    rows = made_up_rows(3)
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    order(tmp_path / "trouble", 1, "kill", "within")
    assert drive(tmp_path, "local-cluster[2,1,1024]") == 0, (tmp_path / "log").read_text()[-3000:]
    assert FolderSink(tmp_path / "out").read() == expected(SQL, rows)
