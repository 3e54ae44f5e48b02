from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sash.spark.checkpoint_lock
from sash.engine import Engine
from sash.errors import CheckpointError
from sash.spark.checkpoint_lock import lock_checkpoint, refuse_locked
from tests.cli.command import ROOT
from tests.cli.command import sash as sash_command
from tests.spark.files import SQL, TWO_STAGES, FolderSink, batches_of, expected, file_engine, made_up_rows, write_batch

LOCKING = """
import sys
from sash.spark.checkpoint_lock import lock_checkpoint
lock = lock_checkpoint(None, sys.argv[1], "totals")
print("locked", flush=True)
sys.stdin.read()
"""
ANY: Any = None


@contextmanager
def other_process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the code and has printed its first line."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_checkpoint_of_another_process_is_refused_until_it_is_killed(tmp_path: Path) -> None:
    with other_process(LOCKING, str(tmp_path)) as owner:
        with pytest.raises(
            CheckpointError, match=rf"in use: query totals of process {owner.pid} on \S+ \(.*\) .*since \d"
        ) as e:
            lock_checkpoint(ANY, str(tmp_path), "mine")
        assert "Stop that one first, or choose another checkpoint" in str(e.value)
        with pytest.raises(CheckpointError, match=f"process {owner.pid} "):
            refuse_locked(str(tmp_path))
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        refuse_locked(str(tmp_path))
        lock_checkpoint(ANY, str(tmp_path), "mine").release()


def test_a_second_job_is_refused_before_spark_starts(tmp_path: Path) -> None:
    job = tmp_path / "job.sql"
    job.write_text(
        "CREATE STREAM s (ts BIGINT, k INT) USING csv OPTIONS (path 'in');\n"
        "CREATE QUERY totals AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY k\nINTO console;\n"
    )
    with other_process(LOCKING, str(tmp_path / "state" / "totals")) as owner:
        refused = sash_command("run", str(job), "--checkpoint", str(tmp_path / "state"))
    assert refused.returncode == 1
    assert (
        f"job.sql:2:1: checkpoint {tmp_path}/state/totals is in use: query totals of process {owner.pid}"
        in refused.stderr
    )
    assert "starting Spark" not in refused.stdout


def test_a_lock_is_free_after_it_is_released(tmp_path: Path) -> None:
    first = lock_checkpoint(ANY, str(tmp_path), "first")
    with pytest.raises(CheckpointError, match="query first of this process"):
        lock_checkpoint(ANY, f"file:{tmp_path}", "second")
    first.release()
    first.release()
    lock_checkpoint(ANY, f"{tmp_path}/", "second").release()


def test_a_checkpoint_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"file/totals cannot be written: Not a directory\. Choose a folder"):
        lock_checkpoint(ANY, str(tmp_path / "file" / "totals"), "totals")


@pytest.mark.spark
def test_two_queries_do_not_share_a_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    engine, place = file_engine(spark, tmp_path / "in"), str(tmp_path / "checkpoint")
    running = engine.sql(SQL).start("noop", checkpoint=place, name="first")
    try:
        with pytest.raises(CheckpointError, match="in use: query first of this process"):
            engine.sql(SQL).start("noop", checkpoint=place, name="second")
        assert running.active
    finally:
        running.stop()
    ended = engine.sql(SQL).start("noop", checkpoint=place, name="third", trigger="available_now")
    ended.query.awaitTermination()
    engine.sql(SQL).start("noop", checkpoint=place, name="fourth").stop()


@pytest.mark.spark
def test_a_checkpoint_on_another_file_system_is_leased(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sash.spark.checkpoint_lock, "RENEWAL", 0.2)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    hadoop.set("fs.viewfs.mounttable.leased.link./far", f"file:{tmp_path}")
    place = "viewfs://leased/far/checkpoint"
    (tmp_path / "checkpoint").mkdir()
    lease = tmp_path / "checkpoint" / "sash.lock"

    lock = lock_checkpoint(spark, place, "first")
    with pytest.raises(CheckpointError, match="in use: query first of this process"):
        lock_checkpoint(spark, place, "second")
    elsewhere = lease.read_text().replace('"host": "', '"host": "other-')
    lock.release()
    assert not lease.exists()

    lease.write_text(elsewhere)
    lock_checkpoint(spark, place, "third").release()
    assert "checking whether query first of process" in caplog.text

    lock = lock_checkpoint(spark, place, "fourth")
    sash.spark.checkpoint_lock._held.clear()
    monkeypatch.setattr(sash.spark.checkpoint_lock.socket, "gethostname", lambda: "here")
    with pytest.raises(CheckpointError, match="in use: query fourth of process"):
        lock_checkpoint(spark, place, "fifth")
    lock._free()


@pytest.mark.spark
@pytest.mark.parametrize("sql", [SQL, TWO_STAGES])
def test_differential_the_number_of_shards_is_the_checkpoint_s(spark: SparkSession, tmp_path: Path, sql: str) -> None:
    rows, sink, place = made_up_rows(3), FolderSink(tmp_path / "out"), str(tmp_path / "checkpoint")
    reader = spark.readStream.schema("ts long, k string, v long").option("maxFilesPerTrigger", 1)
    for number, (batch, shards) in enumerate(zip(batches_of(rows), (3, None, 3), strict=True)):
        write_batch(tmp_path / "in", number, batch)
        engine = Engine(spark, shards=shards)
        engine.stream("s", reader.parquet(str(tmp_path / "in")))
        running = engine.sql(sql).start(sink, trigger="available_now", checkpoint=place)
        running.await_termination()
        running.stop()
    assert sink.read() == expected(sql, rows)
    other = Engine(spark, shards=5)
    other.stream("s", reader.parquet(str(tmp_path / "in")))
    with pytest.raises(CheckpointError, match=r"another number of shards \(then: 3, now: 5\)\. .* leave out --shards"):
        other.sql(sql).start(sink, checkpoint=place)
