"""Runs queries in a session of Spark Connect, over a local server, and prints what became of them as JSON."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.core import DefaultChannelBuilder

import sash
from sash.spark.packages import package_settings
from tests.catalog import NAME, catalog_settings
from tests.kafka import broker, fetched

T = TypeVar("T")
_TRIES = 20
ROOT = Path(__file__).parents[2]
SALES = [
    "2026-01-01T12:00:00,a,2.5",
    "2026-01-01T12:00:01,b,1.0",
    "2026-01-01T12:00:02,a,0.5",
    "2026-01-01T12:00:09,c,1",
]
SQL = "SELECT k, SUM(v) AS total FROM s [RANGE 1 HOUR] GROUP BY k"


def refusal(call: Callable[[], Any]) -> str:
    try:
        call()
    except sash.SashError as problem:
        return str(problem)
    return "nothing was refused"


def write_file(batch: Any, number: int) -> None:
    """A function that writes batches: it runs on the server, and may get a batch again."""
    home = Path(batch.sparkSession.conf.get("spark.sash.test.home"))
    rows = sorted(tuple(row) for row in batch.select("_op", "k", "total").collect())
    (home / f"function-{number}.json").write_text(json.dumps(rows))


def patiently(call: Callable[[], T]) -> T:
    """Call again if a Python worker was slow to start, for which Spark allows ten seconds: the query goes on."""
    for _ in range(_TRIES - 1):
        try:
            return call()
        except sash.QueryFailedError as problem:
            if "did not start in time" not in str(problem):
                raise
    return call()


def follow_page(home: Path, port: int) -> None:
    """Execute the page's example: it writes to a Delta table."""
    (block,) = re.findall(r'```text title="Connect"\n(.*?)```', (ROOT / "docs" / "spark.md").read_text(), re.DOTALL)
    exec(block.replace("sc://host:15002", f"sc://127.0.0.1:{port}").replace("/data/", f"{home}/"), {})


def over_kafka(spark: SparkSession, home: Path) -> list[Any]:
    """The answer of the same query over one topic, in another."""
    with broker() as kafka:
        for topic in ("in", "out"):
            kafka.create_topic(topic)
        kafka.produce("in", [{"value": line} for line in SALES])
        source = {"kafka.bootstrap.servers": kafka.servers, "subscribe": "in", "startingOffsets": "earliest"}
        parsed = "from_csv(CAST(value AS STRING), 'ts TIMESTAMP, k STRING, v DOUBLE') AS row"
        engine = sash.Engine(spark, shards=2)
        frame = spark.readStream.format("kafka").options(**source).load().selectExpr(parsed).select("row.*")
        engine.stream("s", frame)
        sink = {"kafka.bootstrap.servers": kafka.servers, "topic": "out"}
        patiently(
            lambda: (
                engine.sql(SQL)
                .start("kafka", mode="upsert", trigger="available_now", checkpoint=str(home / "c10"), **sink)
                .await_termination()
            )
        )
        latest = {record.key(): record.value() for record in kafka.records("out")}
        return [list(json.loads(value).values()) for value in latest.values() if value is not None]


def main(home: Path, postgres: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # type: ignore[method-assign]
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sash.test.home": str(home),
        **catalog_settings(),
    }
    settings = package_settings(["kafka"], settings) if fetched() else settings
    spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    (home / "in").mkdir()
    (home / "in" / "1.csv").write_text("\n".join(SALES) + "\n")
    engine = sash.Engine(spark, shards=2)
    engine.stream("s", spark.readStream.schema("ts timestamp, k string, v double").csv(str(home / "in")))
    query = engine.sql(SQL)

    def run_once(sink: Any, checkpoint: str, **options: str) -> sash.RunningQuery:
        running = query.start(sink, trigger="available_now", checkpoint=str(home / checkpoint), **options)
        running.await_termination()
        return running

    def run(*arguments: Any, **options: str) -> sash.RunningQuery:
        return patiently(lambda: run_once(*arguments, **options))

    for _ in range(2):  # the second start goes on, and finds nothing
        run("changelog", "c1", path=str(home / "log"))
    changes = pq.read_table(home / "log").select(["_op", "k", "total"]).to_pylist()
    run("parquet", "c4", path=str(home / "files"))
    patiently(lambda: follow_page(home, port))
    run(write_file, "c6")
    sinks = {
        "parquet": [
            list(row.values()) for row in pq.read_table(home / "files").select(["_op", "k", "total"]).to_pylist()
        ],
        "delta": [list(row.values()) for row in DeltaTable(home / "totals").to_pyarrow_table().to_pylist()],
        "function": [row for file in sorted(home.glob("function-*.json")) for row in json.loads(file.read_text())],
    }
    if postgres:
        run("postgres", "c7", url=postgres, table="totals")
        with psycopg.connect(postgres) as connection:
            sinks["postgres"] = [list(row) for row in connection.execute("SELECT k, total FROM totals").fetchall()]
    if catalog_settings():
        run("table", "c8", table=f"{NAME}.db.totals")
        sinks["table"] = [list(row) for row in spark.table(f"{NAME}.db.totals").collect()]
    warehouse = {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": (home / "warehouse").as_uri()}
    run("iceberg", "c9", table="shop.totals", **warehouse)
    shop = load_catalog("sash", **warehouse)
    sinks["iceberg"] = [list(row.values()) for row in shop.load_table("shop.totals").scan().to_arrow().to_pylist()]
    if fetched():
        sinks["kafka"] = over_kafka(spark, home)
    other = engine.sql(SQL.replace("SUM", "MAX"))
    job = engine.job("j")
    job.add("q", SQL, "changelog", path=str(home / "l2"))
    found = {
        "changes": sorted(tuple(change.values()) for change in changes),
        "sinks": {name: sorted(rows) for name, rows in sinks.items()},
        "refused": {
            "checkpoint": refusal(lambda: other.start("noop", checkpoint=str(home / "c1"))),
            "live": refusal(query.live),
            "job": refusal(job.start),
            "keep": refusal(lambda: engine.keep("s", "10 seconds", "1 second", path=str(home / "w"))),
            "progress": refusal(run("noop", "c3").progress),
            "metrics": refusal(engine.metrics),
        },
    }
    engine.close()
    sys.stdout.write(json.dumps(found, default=str))


main(Path(sys.argv[1]), sys.argv[2])
