"""Kafka to Kafka: a job that is killed at random, its topic compared with DuckDB; and its rate, beside that of Spark's connector.

The job counts and adds up rows of a window that slides by the second, and writes every change to a topic. Its process group is
killed by SIGKILL at random moments while it is in a batch. The topic, without repeated messages, is then folded at instants
between the first row and the last, and compared with the rows that are valid there.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bench.report import Figures
from bench.runs import in_own_process, scratch
from sash.errors import SashError

PARTITIONS, KEYS, SECOND = 4, 100, 1_000_000
WINDOW = 10
_STEP = 1_000
"""Microseconds between two rows."""
_PER_BATCH = 50_000
_INSTANTS = 25
_WARM_UP = 4


def measure(rows: int, kills: int, seed: int) -> Figures:
    """Fill a topic, kill the job that reads it so many times, check what it wrote, and measure the rates."""
    from tests.kafka import broker, fetched

    if not fetched():
        raise SashError("Kafka's jars are not in the environment: scripts/setup-kafka.sh .venv/kafka fetches them")
    rnd = random.Random(seed)
    console = Console(stderr=True)
    with scratch() as home, broker() as kafka:
        for topic in ("in", "out", "timed"):
            kafka.create_topic(topic, PARTITIONS)
        with console.status("filling the topic"):
            keys, values = _fill(kafka, rows, seed)
        (home / "job.sql").write_text(_script(kafka.servers, "out"))
        with console.status("the job, killed at random"):
            killed = [_killed(home, rnd) for _ in range(kills)]
            done = _start(home)
            if done.wait() != 0:
                raise SashError((home / "log").read_text()[-2000:])
        with console.status("comparing the topic with DuckDB"):
            records = kafka.records("out")
            checked = _compare(records, keys, values)
        with console.status("rates"):
            rates = in_own_process(_rates, kafka.servers, str(home))
    return {
        "rows": rows, "partitions": PARTITIONS, "rows_per_batch": _PER_BATCH, "killed_after_batches": killed, **checked, **rates,
        "ratio": round(rates["events_per_s"] / rates["connector_events_per_s"], 3),
    }  # fmt: skip


def _fill(kafka: Any, rows: int, seed: int) -> tuple[Any, Any]:
    """Append rows, one per millisecond of event time, partition by partition."""
    from confluent_kafka import Producer

    values_of = np.random.default_rng(seed)
    keys, values = values_of.integers(0, KEYS, rows), values_of.integers(0, 1_000, rows)
    producer = Producer(
        {"bootstrap.servers": kafka.servers, "queue.buffering.max.messages": 1_000_000, "linger.ms": 50}
    )
    for number, (key, value) in enumerate(zip(keys.tolist(), values.tolist(), strict=True)):
        text = f'{{"ts":{number * _STEP},"k":{key},"v":{value}}}'
        producer.produce("in", value=text, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(300):
        raise SashError("the topic could not be filled")
    return keys, values


def _script(servers: str, topic: str) -> str:
    options = f"kafka.bootstrap.servers '{servers}'"
    return (
        f"CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) USING kafka OPTIONS ({options}, subscribe 'in', "
        f"startingOffsets 'earliest', format 'json', maxOffsetsPerTrigger {_PER_BATCH});\n"
        f"CREATE QUERY totals AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE {WINDOW} SECONDS SLIDE 1 SECOND] "
        f"GROUP BY k INTO kafka ({options}, topic '{topic}') MODE changes TRIGGER 'available_now';\n"
    )


def _start(home: Path) -> subprocess.Popen[bytes]:
    command = [
        str(Path(sys.executable).with_name("sash")),
        "run",
        "job.sql",
        "--with",
        "kafka",
        "--checkpoint",
        "state",
    ]
    with (home / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=home, stdout=log, stderr=log, start_new_session=True)  # noqa: S603


def _killed(home: Path, rnd: random.Random) -> int:
    """Start the job, kill it at a random moment after its next batches; returns how many batches had been committed."""
    before, job = _committed(home), _start(home)
    while _committed(home) < before + 2:
        if job.poll() is not None:
            raise SashError(f"the job ended before it was killed: {(home / 'log').read_text()[-2000:]}")
        time.sleep(0.05)
    time.sleep(rnd.uniform(0, 2))
    if job.poll() is not None:
        raise SashError("the job ended before it was killed: give it more rows")
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    return _committed(home)


def _committed(home: Path) -> int:
    return sum(1 for path in (home / "state").rglob("commits/*") if path.name.isdigit())


def _compare(records: list[Any], keys: Any, values: Any) -> dict[str, Any]:
    """Fold the topic without repeated messages, and compare with the valid rows at instants spread over the stream."""
    names = ("sash-query", "sash-batch", "sash-sequence")
    once: dict[tuple[bytes, ...], dict[str, Any]] = {}
    for record in records:
        headers = dict(record.headers())
        once[tuple(headers[name] for name in names)] = json.loads(record.value())
    changes = sorted(once.values(), key=lambda change: int(change["_ts"]))
    last = (len(keys) - PARTITIONS) * _STEP
    instants = [int(at) * SECOND for at in np.linspace(1, last // SECOND, _INSTANTS)]
    times = np.arange(len(keys), dtype=np.int64) * _STEP
    source = {"ts": times, "k": keys, "v": values}
    connection = duckdb.connect()
    connection.register("s", pa.table(source))
    folded: Counter[tuple[int, ...]] = Counter()
    position, right = 0, 0
    for at in instants:
        while position < len(changes) and int(changes[position]["_ts"]) <= at:
            change = changes[position]
            folded[change["k"], change["n"], change["total"]] += 1 if change["_op"] == "+" else -1
            position += 1
        valid = f"SELECT k, COUNT(*), SUM(v)::BIGINT FROM s WHERE ts <= {at} AND ts > {at - WINDOW * SECOND} GROUP BY k"
        right += Counter(connection.execute(valid).fetchall()) == Counter({row: n for row, n in folded.items() if n})
    return {
        "messages": len(records), "repeated": len(records) - len(once), "instants": len(instants), "right_instants": right,
    }  # fmt: skip


def _rates(servers: str, home: str) -> dict[str, float]:
    """Events per second of the job, and of Spark's connector that writes to nowhere, one after the other in one session."""
    from sash.engine import Engine
    from sash.script.reader import read_script
    from sash.script.session import Session
    from sash.spark.packages import package_settings
    from sash.spark.session import embedded_session

    spark = embedded_session(
        extra={**package_settings(["kafka"], {}), "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    )
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "in")
    source = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", _PER_BATCH)
    writer = source.load().writeStream.format("noop").trigger(availableNow=True)
    plain = writer.option("checkpointLocation", f"{home}/plain").start()
    plain.awaitTermination()
    limit = _rate([(p["numInputRows"], p["durationMs"]["triggerExecution"]) for p in plain.recentProgress])
    session = Session.on(Engine(spark, f"{home}/timed"))
    for statement in read_script(_script(servers, "timed")):
        session.execute(statement)
    session.launch()
    (job,) = session.backend.jobs().values()
    job.await_termination()
    batches: list[tuple[int, float]] = [(one["rows_in"], one["batch_ms"]) for one in job.drain_progress()]
    job.finish()
    spark.stop()
    return {"events_per_s": _rate(batches), "connector_events_per_s": limit}


def _rate(batches: list[tuple[int, float]]) -> float:
    """Rows per second without the first batches, in which Java compiles."""
    steady = [batch for batch in batches if batch[0]][_WARM_UP:]
    return round(sum(rows for rows, _ in steady) / (sum(millis for _, millis in steady) / 1_000))


def table(found: Figures) -> Table:
    """The figures as a table."""
    shown = Table("", "", title="Kafka to Kafka")
    for name, value in found.items():
        shown.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    return shown
