"""The embedded Spark session, its scheduling pools, and the settings with which a query is started."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sash.errors import OptionError

_STORE = "spark.sql.streaming.stateStore."

_EVERY_QUERY = {
    _STORE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    _STORE + "rocksdb.changelogCheckpointing.enabled": "true",
    _STORE + "rocksdb.trackTotalNumberOfRows": "false",  # counting would read every key before writing it
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # With any other value Spark computes the size of the Arrow batch at every row: 40 % of its tasks' CPU time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "16",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""The settings of every query, besides the number of shuffle partitions, which is that of shards."""

_CODES = re.compile(r"^\[[A-Z_.]+\] | SQLSTATE: .*$")
_PARTITIONS = "spark.sql.shuffle.partitions"

_JAVA_OPTIONS = (
    "-Xss16m -XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
)
"""Java options: deep plans need the stack, and Arrow transfers rows faster without its two checks per value."""

_LOCAL_CHECKPOINT = {
    # Spark's default manager runs a command to set the permissions of every file, which takes 20 ms or more.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""Settings for a checkpoint on a local disk, where renaming is atomic."""


_POOL = "spark.scheduler.pool"
URGENT, STREAMS, BACKGROUND = "urgent", "streams", "background"
_FAIR = {
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": Path(__file__).with_name("pools.xml").as_uri(),
}
"""The settings of a session with these scheduling pools, which are shares of the cores."""


def embedded_session(
    cores: int | None = None, master: str | None = None, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """The active session, or a new one in this process with `extra` settings."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _add_package_to_python_path()
    count = cores or os.cpu_count() or 1
    builder = SparkSession.builder.appName("sash")
    if master is not None or not submitted():
        builder = builder.master(master or f"local[{count},4]")
    builder = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", _JAVA_OPTIONS)
        .config("spark.driver.memory", "2g")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .config(_PARTITIONS, str(count))
        .config("spark.sql.streaming.stopTimeout", "60s")
    )
    for name, value in {**_FAIR, **(extra or {})}.items():
        builder = builder.config(name, value)
    with _own_process_group():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _own_process_group() -> Iterator[None]:
    """Start the JVM in a process group of its own, so that signals to ours (Ctrl-C, `timeout`) do not end it in a batch.

    It ends with this process, when its standard input is closed.
    """
    import pyspark.java_gateway

    gateway: Any = pyspark.java_gateway
    launch = gateway.Popen
    gateway.Popen = partial(launch, start_new_session=True)
    try:
        yield
    finally:
        gateway.Popen = launch


def submitted() -> bool:
    """Whether spark-submit started this process, and so sets the master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _add_package_to_python_path() -> None:
    """Let Python workers import the package from where this process imported it."""
    home = str(Path(__file__).resolve().parents[2])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if home not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([home, *paths])


def default_shards(spark: SparkSession) -> int:
    """One shard per core; if Spark does not report the cores, one per shuffle partition, up to 16."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # noqa: BLE001  (a Connect session has no Spark context, whatever it raises)
        return min(16, int(spark.conf.get(_PARTITIONS) or 16))


def settings(shards: int, checkpoint: str | None = None) -> dict[str, str]:
    """The settings of a query with this number of shards and this checkpoint directory."""
    on_disk = checkpoint is not None and (checkpoint.startswith("file:") or "://" not in checkpoint)
    return {**_EVERY_QUERY, **(_LOCAL_CHECKPOINT if on_disk else {}), _PARTITIONS: str(shards)}


@contextmanager
def query_settings(spark: SparkSession, shards: int, checkpoint: str | None = None) -> Iterator[None]:
    """Apply a query's settings while it is started, then restore the user's; a started query keeps its own."""
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
    """Apply a query's settings permanently."""
    for name, value in settings(shards).items():
        spark.conf.set(name, value)


def has_jar(name: str) -> bool:
    """Whether the installed Spark has a jar whose name starts so."""
    return any(Path(pyspark.__file__).parent.glob(f"jars/{name}*.jar"))


def set_option(spark: SparkSession, name: str, value: str) -> None:
    """Change a setting of the session; raise OptionError if Spark refuses it."""
    try:
        spark.conf.set(name, value)
    except PySparkException as problem:
        text = str(problem).strip().splitlines()[0]
        raise OptionError(f"SET {name}: {_CODES.sub('', text)}") from None


@contextmanager
def in_pool(spark: SparkSession, pool: str) -> Iterator[None]:
    """Run the jobs and streaming queries that this thread starts in a pool, if the session has pools."""
    try:
        context = spark.sparkContext
    except Exception:  # noqa: BLE001  (a Connect session has no Spark context, whatever it raises)
        yield
        return
    before = context.getLocalProperty(_POOL)
    context.setLocalProperty(_POOL, pool)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, cast("str", before))  # None removes the property


def pool_of(priority: int) -> str:
    """The pool for reads of a query with this priority."""
    return URGENT if priority > 0 else BACKGROUND
