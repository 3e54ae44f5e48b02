"""Kafka to Kafka and Kafka to a Delta table: jobs that are killed at random, compared with DuckDB; and their rates.

A job counts and adds up rows of a window that slides by the second, and writes every change. Its process group is killed by
SIGKILL at random moments while it is in a batch. The changes, of a topic without repeated messages, are then folded at instants
between the first row and the last, and compared with the rows that are valid there. The rates are those of both jobs and of
Spark's connector alone, which writes to nowhere: in one session, in turns.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bench.killing import killed, start
from bench.report import Figures
from bench.runs import in_own_process, scratch
from sash.errors import SashError

PARTITIONS, KEYS, SECOND = 4, 100, 1_000_000
WINDOW = 10
_STEP = 1_000
"""Microseconds between two rows."""
_BATCHES = (20, 5)
"""Into how many batches the rows are divided; rates are measured with both: a batch has costs that do not depend on its rows."""
_INSTANTS = 25
_JOB = ("--with", "kafka")

TARGETS = ("topic", "table")
Change = tuple[int, str, int, int, int]
"""Its `_ts` and `_op`, and the columns k, n and total."""


def measure(rows: int, kills: int, turns: int, seed: int) -> Figures:
    """Fill a topic, kill the jobs that read it so many times, check what they wrote, and measure the rates."""
    from tests.kafka import broker, fetched

    if not fetched():
        raise SashError("Kafka's jars are not in the environment: scripts/setup-kafka.sh .venv/kafka fetches them")
    rnd, sizes = random.Random(seed), [rows // batches for batches in _BATCHES]
    console = Console(stderr=True)
    with scratch() as home, broker() as kafka:
        for topic in ("in", "out"):
            kafka.create_topic(topic, PARTITIONS)
        for turn, size in product(range(turns + 1), sizes):
            kafka.create_topic(f"timed-{turn}-{size}", PARTITIONS)
        with console.status("filling the topic"):
            keys, values = _fill(kafka, rows, seed)
        found: Figures = {"rows": rows, "partitions": PARTITIONS, "rows_per_batch": sizes}
        for target in TARGETS:
            folder = home / target
            folder.mkdir()
            (folder / "job.sql").write_text(
                _script(kafka.servers, _into(target, kafka.servers, "out", folder), sizes[0])
            )
            with console.status(f"Kafka to {target}: the job, killed at random"):
                after = [killed(folder, rnd, _JOB) for _ in range(kills)]
                done = start(folder, _JOB)
                if done.wait() != 0:
                    raise SashError((folder / "log").read_text()[-2000:])
            with console.status(f"Kafka to {target}: comparing with DuckDB"):
                written = _of_topic(kafka.records("out")) if target == "topic" else _of_table(folder / "table")
                checked = {"killed_after_batches": after, **written[1], **_compare(written[0], keys, values)}
            found |= {f"{target}_{name}": value for name, value in checked.items()}
        with console.status("rates"):
            found |= in_own_process(_rates, kafka.servers, str(home), turns, sizes)
    return found


def _into(target: str, servers: str, topic: str, folder: Path) -> str:
    if target == "topic":
        return f"kafka (kafka.bootstrap.servers '{servers}', topic '{topic}')"
    return f"delta (path '{folder / 'table'}')"


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


def _script(servers: str, into: str, size: int) -> str:
    return (
        f"CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) USING kafka OPTIONS (kafka.bootstrap.servers '{servers}', "
        f"subscribe 'in', startingOffsets 'earliest', format 'json', maxOffsetsPerTrigger {size});\n"
        f"CREATE QUERY totals AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE {WINDOW} SECONDS SLIDE 1 SECOND] "
        f"GROUP BY k INTO {into} MODE changes TRIGGER 'available_now';\n"
    )


def _of_topic(records: list[Any]) -> tuple[list[Change], dict[str, int]]:
    """The changes of a topic without repeated messages, and how many messages there are."""
    names = ("sash-query", "sash-batch", "sash-sequence")
    once: dict[tuple[bytes, ...], dict[str, Any]] = {}
    for record in records:
        headers = dict(record.headers())
        once[tuple(headers[name] for name in names)] = json.loads(record.value())
    found = [(int(one["_ts"]), one["_op"], one["k"], one["n"], one["total"]) for one in once.values()]
    return found, {"messages": len(records), "repeated": len(records) - len(once)}


def _of_table(path: Path) -> tuple[list[Change], dict[str, int]]:
    """The changes in a table as they are, and how many there are."""
    from deltalake import DeltaTable

    table = DeltaTable(path).to_pyarrow_table(columns=["_ts", "_op", "k", "n", "total"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)), {"changes": len(table)}


def _compare(changes: list[Change], keys: Any, values: Any) -> dict[str, Any]:
    """Fold changes, and compare with the valid rows at instants spread over the stream."""
    changes = sorted(changes)
    last = (len(keys) - PARTITIONS) * _STEP
    instants = [int(at) * SECOND for at in np.linspace(1, last // SECOND, _INSTANTS)]
    times = np.arange(len(keys), dtype=np.int64) * _STEP
    source = {"ts": times, "k": keys, "v": values}
    connection = duckdb.connect()
    connection.register("s", pa.table(source))
    folded: Counter[tuple[int, ...]] = Counter()
    position, right = 0, 0
    for at in instants:
        while position < len(changes) and changes[position][0] <= at:
            _, op, *row = changes[position]
            folded[tuple(row)] += 1 if op == "+" else -1
            position += 1
        valid = f"SELECT k, COUNT(*), SUM(v)::BIGINT FROM s WHERE ts <= {at} AND ts > {at - WINDOW * SECOND} GROUP BY k"
        right += Counter(connection.execute(valid).fetchall()) == Counter({row: n for row, n in folded.items() if n})
    return {"instants": len(instants), "right_instants": right}


def _rates(servers: str, home: str, turns: int, sizes: list[int]) -> dict[str, Any]:
    """Events per second of the jobs, and of Spark's connector that writes to nowhere, in turns; the medians, and their ratios.

    The first turn, in which Java compiles, does not count. `ms_per_batch` is where the time of a job's batches goes.
    """
    from sash.spark.packages import package_settings
    from sash.spark.session import embedded_session

    spark = embedded_session(
        extra={**package_settings(["kafka"], {}), "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    )
    measured: dict[tuple[int, str], list[float]] = {}
    parts: dict[tuple[int, str], dict[str, float]] = {}
    for turn, size in product(range(turns + 1), sizes):
        folder = Path(home, f"turn-{turn}-{size}")
        folder.mkdir()
        rates = {"connector": _connector(spark, servers, folder, size)}
        for target in TARGETS:
            script = _script(servers, _into(target, servers, f"timed-{turn}-{size}", folder), size)
            rates[target], parts[size, target] = _job(spark, f"{folder}/{target}", script)
        for name, rate in rates.items() if turn else ():
            measured.setdefault((size, name), []).append(rate)
    spark.stop()
    found: dict[str, Any] = {"turns": turns}
    for size in sizes:
        middle = {name: round(median(measured[size, name])) for name in ("connector", *TARGETS)}
        found[f"at_{size}_per_batch"] = {
            "connector_events_per_s": middle["connector"],
            **{f"{target}_events_per_s": middle[target] for target in TARGETS},
            **{f"{target}_ratio": round(middle[target] / middle["connector"], 3) for target in TARGETS},
            **{f"{target}_ms_per_batch": parts[size, target] for target in TARGETS},
        }
    return found


def _connector(spark: Any, servers: str, folder: Path, size: int) -> float:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", "in")
    source = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", size)
    writer = source.load().writeStream.format("noop").trigger(availableNow=True)
    plain = writer.option("checkpointLocation", f"{folder}/plain").start()
    plain.awaitTermination()
    return _rate(_steady(plain))


def _job(spark: Any, checkpoint: str, script: str) -> tuple[float, dict[str, float]]:
    from sash.engine import Engine
    from sash.script.reader import read_script
    from sash.script.session import Session

    session = Session.on(Engine(spark, checkpoint))
    for statement in read_script(script):
        session.execute(statement)
    session.launch()
    (job,) = session.backend.jobs().values()
    job.await_termination()
    steady = _steady(job.query)
    job.finish()
    names = dict.fromkeys(name for one in steady for name in one["durationMs"])
    return _rate(steady), {
        name: round(sum(one["durationMs"].get(name, 0) for one in steady) / len(steady)) for name in names
    }


def _steady(query: Any) -> list[Any]:
    """Spark's reports of the batches but the first, which has costs of the start."""
    return [report for report in query.recentProgress if report["numInputRows"]][1:]


def _rate(batches: list[Any]) -> float:
    """Rows per second."""
    rows = sum(int(one["numInputRows"]) for one in batches)
    return round(rows / (sum(int(one["durationMs"]["triggerExecution"]) for one in batches) / 1_000))


def table(found: Figures) -> Table:
    """The figures as a table."""
    shown = Table("", "", title="Kafka to Kafka and to a table")
    flat = {name: value for name, value in found.items() if not isinstance(value, dict)}
    for group, values in found.items():
        flat |= {f"{group}: {name}": value for name, value in values.items()} if isinstance(values, dict) else {}
    for name, value in flat.items():
        shown.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    return shown


def costs(found: Figures, name: str) -> tuple[float, float]:
    """The milliseconds of a batch that do not depend on its rows, and the microseconds per row: a line through both sizes.

    >>> costs({"rows_per_batch": [200, 50], "at_200_per_batch": {"topic_events_per_s": 500},
    ...        "at_50_per_batch": {"topic_events_per_s": 250}}, "topic")
    (133.3, 1333.3)
    """
    (large, slow), (small, quick) = (
        (size, size / found[f"at_{size}_per_batch"][f"{name}_events_per_s"] * 1_000)
        for size in sorted(found["rows_per_batch"], reverse=True)
    )
    per_row = (slow - quick) / (large - small)
    return round(quick - small * per_row, 1), round(per_row * 1_000, 1)


def page(found: Figures) -> str:
    """The page of the figures."""
    sizes = "".join(
        f"| {size:,} | {at['connector_events_per_s']:,} | {at['topic_events_per_s']:,} ({at['topic_ratio']:.2f}) | "
        f"{at['table_events_per_s']:,} ({at['table_ratio']:.2f}) |\n"
        for size in found["rows_per_batch"]
        for at in [found[f"at_{size}_per_batch"]]
    )
    parts = "".join(
        f"| {title} | {fixed:,.0f} | {per_row:.1f} |\n"
        for name, title in (
            ("connector", "connector alone"),
            ("topic", "Kafka to Kafka"),
            ("table", "Kafka to a table"),
        )
        for fixed, per_row in [costs(found, name)]
    )
    return _PAGE.format(
        parts=parts,
        share=found["table_changes"] / found["rows"],
        rows=f"{found['rows']:,}", partitions=found["partitions"], kills=len(found["topic_killed_after_batches"]),
        window=WINDOW, instants=found["topic_instants"], turns=found["turns"], sizes=sizes,
        topic=f"{found['topic_right_instants']} of {found['topic_instants']}", messages=f"{found['topic_messages']:,}",
        repeated=f"{found['topic_repeated']:,}", changes=f"{found['table_changes']:,}",
        table=f"{found['table_right_instants']} of {found['table_instants']}",
    )  # fmt: skip


_PAGE = """# Kafka to Kafka, and Kafka to a table

`python -m bench kafka --save` measures this page, with a broker of its own on the same machine. Its figures are in `bench/results/`.

A topic has {rows} records in {partitions} partitions. One job counts and adds up a window of {window} seconds that slides by the second, and writes every change to another topic; a second job writes the same to a Delta table. Each is killed by SIGKILL {kills} times, at random moments within a batch, and started again. Then the changes are folded at {instants} instants, and compared with DuckDB over the rows that are valid there.

| | topic | Delta table |
|---|---:|---:|
| right instants | {topic} | {table} |
| messages or changes | {messages} | {changes} |
| of these repeated | {repeated} | none may be |

Rates are measured without kills, in one session: Spark's connector alone, which reads the topic and writes to nowhere, then both jobs, in turns. The first turn does not count; the figures are the medians of the others ({turns}), in events per second, with the share of the connector's rate.

| rows per batch | connector alone | Kafka to Kafka | Kafka to a table |
|---:|---:|---:|---:|
{sizes}
A batch has costs that do not depend on its rows. A line through both sizes of batches divides them from those of the rows:

| | ms per batch | µs per row |
|---|---:|---:|
{parts}
The connector alone does not look at the records. The jobs also parse them as JSON, bring them to the shards, compute the answers, and write {share:.1f} changes per row.
"""
