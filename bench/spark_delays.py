"""Output delay on Spark by the wall clock: paper 1's queries over sales that are stamped as they come, with a heartbeat.

Beside the delays is how long batches take and how long one comes after another: no answer can leave before its batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.pipelines import PRICES, STORES, Workload
from sash.cli.session import quiet_engine
from sash.engine import Engine
from sash.plan.options import check_strategy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIGGER_MS = 500
HEARTBEAT_MS = 200
WINDOW = 5
"""Of the queries, in seconds: what is measured begins twice as much after the start."""


def measure_delays(queries: Sequence[str], strategies: Sequence[str], rate: float, seconds: int) -> dict[str, Any]:
    """Average and longest delay of the changes, and the batches, by query and strategy, each run for some seconds."""
    found: dict[str, Any] = {}
    with quiet_engine() as host:
        for number, query in enumerate(queries):
            workload = Workload(query, rate, WINDOW)
            engine = _engine(host.spark, workload)
            if not number:
                _run(engine, workload.sql, strategies[0], 2 * WINDOW)  # the first query of a session starts up slowly
            found[query] = {
                name: _run(engine, workload.sql, name, seconds)
                for name in strategies
                if not (query == "q1" and name == "hybrid")
            }
    return found


def _engine(spark: SparkSession, workload: Workload) -> Engine:
    """With two streams of sales that Spark makes up as time goes by, and the favourites."""
    engine = Engine(spark)
    for number in (1, 2):
        made = spark.readStream.format("rate").option("rowsPerSecond", round(workload.rate)).load()
        sales = made.selectExpr(
            "timestamp AS ts",
            *(
                f"pmod(xxhash64(value, {number}, {salt}), {values}) AS {column}"
                for salt, (column, values) in enumerate(
                    (("store_id", STORES), ("item_id", workload.items), ("price", PRICES))
                )
            ),
        )
        engine.stream(f"sales{number}", sales, heartbeat=f"{HEARTBEAT_MS} milliseconds")
    for name, table in workload.relations.items():
        engine.relation(name, spark.createDataFrame(table))
    return engine


def _run(engine: Engine, sql: str, strategy: str, seconds: int) -> dict[str, float]:
    delays: list[tuple[float, int]] = []
    longest, batches = 0.0, []
    running = engine.sql(sql, strategy=check_strategy(strategy)).start("noop", trigger=f"{TRIGGER_MS} milliseconds")
    began = time.monotonic()
    try:
        while time.monotonic() < began + 2 * WINDOW + seconds:
            running.await_termination(1)
            for seen in running.drain_progress():
                delay = seen["delay_seconds"]
                if time.monotonic() < began + 2 * WINDOW:
                    continue
                batches.append(seen["batch_ms"])
                if delay["average"] is not None:
                    delays.append((delay["average"], seen["rows_out"]))
                    longest = max(longest, delay["max"])
    finally:
        running.stop()
    changes = sum(count for _, count in delays)
    return {
        "average_ms": round(1000 * sum(average * count for average, count in delays) / max(1, changes), 1),
        "longest_ms": round(1000 * longest, 1),
        "changes": changes,
        "batch_ms": round(sum(batches) / max(1, len(batches)), 1),
    }
