"""Snapshot queries over a window that Spark keeps filling, while periodic queries run: response times by level."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from sash.engine import Engine
from sash.transactions.levels import LEVELS

COUNT = 60
KEYS = 100
PERIODIC = 20
SNAPSHOT = "SELECT k, COUNT(*) AS n FROM events [RANGE {range} MILLISECONDS] GROUP BY k"
QUERIES = (
    (
        "SELECT k, SUM(v) AS total FROM events [RANGE {range} MILLISECONDS] WHERE v > {least} GROUP BY k "
        "ORDER BY total DESC LIMIT 10"
    ),
    "SELECT MEDIAN(v) AS middle FROM events [RANGE {range} MILLISECONDS] WHERE v > {least}",
    "SELECT COUNT(DISTINCT k) AS keys FROM events [RANGE {range} MILLISECONDS] WHERE v > {least}",
    "SELECT k, MAX(v) AS most, AVG(v) AS usual FROM events [RANGE {range} MILLISECONDS] WHERE v > {least} GROUP BY k",
)


def live(rate: int, every: int, snapshots: int, reads: str, progress: Callable[[str], None]) -> dict[str, Any]:
    """`rate` events a second into 60 sub-windows of `every` milliseconds; medians over so many snapshots per level."""
    engine = Engine()
    engine.stream("events", _events(engine, rate))
    progress(f"filling a window of {COUNT} sub-windows of {every} ms with {rate:,} events/s")
    keeping = engine.keep("events", window=f"{COUNT * every} milliseconds", every=f"{every} milliseconds")
    try:
        pause = threading.Event()
        while keeping.progress()["sub_windows"] < COUNT:
            pause.wait(0.5)
        levels = {name: _level(engine, keeping, name, every, snapshots, reads, progress) for name in LEVELS}
    finally:
        keeping.stop()
        engine.windows.close()
    return {"rate": rate, "every": every, "reads": reads, "snapshots": snapshots, "levels": levels}


def _events(engine: Engine, rate: int) -> Any:
    source = engine.spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    return source.selectExpr("timestamp AS ts", f"value * 7919 % {KEYS} AS k", "CAST(value * 31 % 1000 AS DOUBLE) AS v")


def _level(
    engine: Engine,
    keeping: Any,
    name: str,
    every: int,
    snapshots: int,
    reads: str,
    progress: Callable[[str], None],
) -> dict[str, float]:
    progress(f"{snapshots} snapshots beside {PERIODIC} periodic queries: {name}")
    span = COUNT * every
    running = [
        engine.periodic(
            QUERIES[number % len(QUERIES)].format(range=span, least=number),
            isolation=name, access="WS", reads=reads, callback=lambda _: None,
        )
        for number in range(PERIODIC)
    ]  # fmt: skip
    rng, pause = random.Random(2), threading.Event()
    before, started = keeping.progress(), time.monotonic()
    try:
        answers = []
        for _ in range(snapshots):
            pause.wait(rng.uniform(0, 2 * every / 1000))
            answers.append(engine.snapshot(SNAPSHOT.format(range=span), isolation=name, access="WS", reads=reads))
    finally:
        for query in running:
            query.stop()
    seconds = time.monotonic() - started
    after = keeping.progress()
    restarts = sum(answer.restarts for answer in answers)
    return {
        "response": median(answer.response_time for answer in answers),
        "freshness": median(answer.freshness for answer in answers),
        "aborted snapshots": restarts / (restarts + len(answers)),
        "periodic executions per second": sum(query.executions for query in running) / seconds,
        "updates per second": (after["updates"] - before["updates"]) / seconds,
        "rows in the window": after["rows"],
    }
