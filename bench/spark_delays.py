"""Output delay on Spark by the wall clock: paper 1's queries over sales with their arrival times, with a heartbeat.

The times of the batches are measured too, because a change cannot leave before its batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""The queries' window in seconds; measuring begins after twice this time."""


def measure_delays(
    queries: Sequence[str], strategies: Sequence[str], rate: float, seconds: int, parts: int
) -> dict[str, Any]:
    """Measure the delays of changes and the times of batches for each query and strategy, in consecutive parts of a run."""
    found: dict[str, Any] = {}
    with quiet_engine() as host:
        for number, query in enumerate(queries):
            workload = Workload(query, rate, WINDOW)
            engine = _engine(host.spark, workload)
            if not number:
                _run(engine, workload.sql, strategies[0], 2 * WINDOW, 1)  # the first query of a session is slow
            found[query] = {
                name: _run(engine, workload.sql, name, seconds, parts)
                for name in strategies
                if not (query == "q1" and name == "hybrid")
            }
    return found


def _engine(spark: SparkSession, workload: Workload) -> Engine:
    """An engine with two streams of sales from Spark's rate source, and the favourites."""
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


def _run(engine: Engine, sql: str, strategy: str, seconds: int, parts: int) -> dict[str, Any]:
    running = engine.sql(sql, strategy=check_strategy(strategy)).start("noop", trigger=f"{TRIGGER_MS} milliseconds")
    try:
        running.await_termination(2 * WINDOW)
        running.drain_progress()
        seen = []
        for _ in range(parts):
            running.await_termination(seconds)
            seen.append(_part(list(running.drain_progress())))
    finally:
        running.stop()
    return {
        "average_ms": [part["average_ms"] for part in seen],
        "longest_ms": [part["longest_ms"] for part in seen],
        "batch_ms": [part["batch_ms"] for part in seen],
        "changes": sum(part["changes"] for part in seen),
    }


def _part(progress: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Delays and batch times of the batches of one part, in milliseconds."""
    changed = [seen for seen in progress if seen["delay_seconds"]["average"] is not None]
    changes = sum(seen["rows_out"] for seen in changed)
    total = sum(seen["delay_seconds"]["average"] * seen["rows_out"] for seen in changed)
    return {
        "average_ms": round(1000 * total / max(1, changes), 1),
        "longest_ms": round(1000 * max((seen["delay_seconds"]["max"] for seen in changed), default=0.0), 1),
        "batch_ms": round(sum(seen["batch_ms"] for seen in progress) / max(1, len(progress)), 1),
        "changes": changes,
    }
