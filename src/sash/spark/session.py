"""The embedded Spark session, its scheduling pools, and the settings with which a query is started."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sash.arguments import shown
from sash.errors import OptionError
from sash.spark import java_process
from sash.spark.class_archive import archive_path, java_options
from sash.spark.java import check_spark_home, java_errors

_STORE = "spark.sql.streaming.stateStore."

_EVERY_QUERY = {
    _STORE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    _STORE + "rocksdb.changelogCheckpointing.enabled": "true",
    _STORE + "rocksdb.trackTotalNumberOfRows": "false",  # counting would read every key before writing it
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    # With any other value Spark computes the size of the Arrow batch at every row: 40 % of its tasks' CPU time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "16",
    # Messages of up to 2 MB each: an Arrow column holds at most 2 GB.
    "spark.sql.execution.arrow.transformWithStateInPandas.maxRecordsPerBatch": "256",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    # Spark starts other workers for tasks with short tracebacks than for stateful ones, which have none.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}
"""The settings of every query, besides the number of shuffle partitions, which is that of shards."""

WHOLE_STATE = {_STORE + "rocksdb.changelogCheckpointing.enabled": "false"}
"""Further settings of a query that writes most of the state in one batch: otherwise its changes are written beside it, and the
next batch begins by making each of them once more."""

LARGE_ROWS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20)}
"""Further settings of a query whose rows are chunks of state: ten thousand of them do not fit into an Arrow column."""

_CODES = re.compile(r"^\[[A-Z_.]+\] | SQLSTATE: .*$")
_PARTITIONS = "spark.sql.shuffle.partitions"

_OPTIONS = "spark.driver.extraJavaOptions"
_JAVA_OPTIONS = (
    "-Xss16m -XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false "
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000 -XX:MetaspaceSize=256m"
)
"""Java options: deep plans need the stack, and Arrow transfers rows faster without its two checks per value.

Java optimizes a method after ten times as many calls as by default: otherwise it optimizes code that only runs at the
start, for which it takes a third of the processor time to the first answer. With more space for classes it need not
collect garbage to make some.
"""

_LOCAL_CHECKPOINT = {
    # Spark's default manager runs a command to set the permissions of every file, which takes 20 ms or more.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""Settings for a checkpoint on a local disk, where renaming is atomic."""


_ONE_PROCESS = {"spark.storage.blockManagerHeartbeatTimeoutMs": str(30 * 24 * 3_600_000)}
"""Settings of a session whose executor is in its own process. After a pause of the machine of two minutes Spark would take the
executor for lost, could not register it again, and would end after sixty heartbeats."""

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
    """The active session, or a new one in this process with `extra` settings. Its Python workers are started at once."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    check_spark_home()
    wanted = _session_settings(cores, master, extra)
    with java_errors():
        if SparkContext._active_spark_context is None:  # noqa: SLF001  (a public way would make one)
            context = SparkContext(conf=SparkConf().setAll(list(wanted.items())), gateway=java_process.take(wanted))
            threading.Thread(target=_start_workers, args=(context,), name="sash-workers", daemon=True).start()
        session = SparkSession.builder.config(map={**wanted}).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def launch_java(master: str | None = None, extra: Mapping[str, str] | None = None) -> None:
    """Launch Java in the background for the session that `embedded_session` makes with the same arguments."""
    if SparkSession.getActiveSession() is None:
        java_process.launch(_session_settings(None, master, extra))


def _session_settings(cores: int | None, master: str | None, extra: Mapping[str, str] | None) -> dict[str, str]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _add_package_to_python_path()
    count = cores or os.cpu_count() or 1
    if master is None and not submitted():
        master = f"local[{count},4]"
    local = master is not None and master.startswith("local")
    one_process = local and not str(master).startswith("local-cluster")
    return {
        "spark.app.name": "sash",
        **({} if master is None else {"spark.master": master}),
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        _OPTIONS: f"{_JAVA_OPTIONS} {java_options(archive_path())}".strip(),
        "spark.driver.memory": "2g",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        **({"spark.python.daemon.module": "sash.spark.worker_daemon"} if local else {}),
        **(_ONE_PROCESS if one_process else {}),
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        _PARTITIONS: str(count),
        "spark.sql.streaming.stopTimeout": "60s",
        **_FAIR,
        **(extra or {}),
    }


def archiving_settings(path: Path) -> dict[str, str]:
    """Settings with which Java archives its classes at this path when it ends."""
    return {_OPTIONS: f"{_JAVA_OPTIONS} {java_options(path, writing=True)}"}


def _start_workers(context: SparkContext) -> None:
    """Have Spark start its Python workers while the first query is still being planned."""
    with suppress(Exception):  # the session may end first
        context.parallelize([0], 1).foreach(_nothing)


def _nothing(_: int) -> None:
    """The work of a task that only starts a worker."""


def submitted() -> bool:
    """Whether spark-submit started this process, and so sets the master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _add_package_to_python_path() -> None:
    """Let Python workers import the package from where this process imported it, and start fast (`worker_site`)."""
    here = Path(__file__).resolve()
    added = [str(here.parent / "worker_site"), str(here.parents[2])]
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([*(path for path in added if path not in paths), *paths])


def check_session(spark: object) -> SparkSession:
    """Return the value if it is a session of Spark's, classic or Connect."""
    if isinstance(spark, SparkSession) or type(spark).__module__.startswith("pyspark.sql.connect"):
        return cast("SparkSession", spark)
    raise OptionError(f"spark must be a SparkSession, or None to start one, not {shown(spark)}")


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
def query_settings(
    spark: SparkSession, shards: int, checkpoint: str | None = None, extra: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Apply a query's settings while it is started, then restore the user's; a started query keeps its own."""
    wanted = {**settings(shards, checkpoint), **(extra or {})}
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
