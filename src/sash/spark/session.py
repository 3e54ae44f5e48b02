"""The Spark session: an embedded local one, and the settings that a query needs around its start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sash.spark.pools import FAIR

_STORE = "spark.sql.streaming.stateStore."

NEEDED = {
    _STORE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    _STORE + "rocksdb.changelogCheckpointing.enabled": "true",
    _STORE + "rocksdb.trackTotalNumberOfRows": "false",  # it would read every key before writing it
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # With any other value Spark sizes the Arrow batch anew at every row: two fifths of its tasks' CPU time, profiled.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "16",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""What a query is started with, besides the number of shuffle partitions: one per shard."""

PARTITIONS = "spark.sql.shuffle.partitions"

JAVA = "-Xss16m -XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""How Java is started: deep plans need the stack; Arrow hands rows over faster without its two checks of each value."""

ON_LOCAL_FILES = {
    # Spark's other manager runs a command to set the rights of every file it makes, at 20 ms and more each.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""What a checkpoint on this machine's own disk is written with: renaming is atomic there."""


def embedded_session(
    cores: int | None = None, master: str | None = None, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """A session in this process, with `extra` settings; the one that is there, if one is."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _let_workers_import_us()
    count = cores or os.cpu_count() or 1
    builder = SparkSession.builder.appName("sash")
    if master is not None or not submitted():
        builder = builder.master(master or f"local[{count},4]")
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.driver.memory", "2g")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .config(PARTITIONS, str(count))
        .config("spark.sql.streaming.stopTimeout", "60s")
    )
    for name, value in {**FAIR, **(extra or {})}.items():
        builder = builder.config(name, value)
    with _out_of_reach_of_signals():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _out_of_reach_of_signals() -> Iterator[None]:
    """A signal to our group of processes (Ctrl-C, `timeout`, a supervisor) is ours to answer: the JVM is not to end
    under a batch that we are about to finish. It ends when we do: its standard input does."""
    import pyspark.java_gateway

    gateway: Any = pyspark.java_gateway
    launch = gateway.Popen
    gateway.Popen = partial(launch, start_new_session=True)
    try:
        yield
    finally:
        gateway.Popen = launch


def submitted() -> bool:
    """Whether spark-submit started us: then the JVM is there, and the master is its to say."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _let_workers_import_us() -> None:
    """Python workers find the package where this process found it."""
    home = str(Path(__file__).resolve().parents[2])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if home not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([home, *paths])


def default_shards(spark: SparkSession) -> int:
    """One shard per core; where Spark does not say how many, one per shuffle partition, within reason."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # noqa: BLE001  (a Connect session has no Spark context, whatever it raises)
        return min(16, int(spark.conf.get(PARTITIONS) or 16))


def settings(shards: int, checkpoint: str | None = None) -> dict[str, str]:
    """The settings that a query of so many shards, with its checkpoint in that place, runs best with."""
    local = checkpoint is not None and (checkpoint.startswith("file:") or "://" not in checkpoint)
    return {**NEEDED, **(ON_LOCAL_FILES if local else {}), PARTITIONS: str(shards)}


@contextmanager
def query_settings(spark: SparkSession, shards: int, checkpoint: str | None = None) -> Iterator[None]:
    """Set what a query needs while it is started, and put the user's values back: a started query keeps its own."""
    wanted = settings(shards, checkpoint)
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def apply_settings(spark: SparkSession, shards: int) -> None:
    """Set what a query needs, to stay."""
    for name, value in settings(shards).items():
        spark.conf.set(name, value)
