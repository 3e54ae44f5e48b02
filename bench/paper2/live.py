"""Snapshot queries over a window that Spark keeps filling, while periodic queries run: response times by level."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from sash.engine import Engine
from sash.window_store.scheduling.levels import LEVELS
from sash.window_store.snapshot import Snapshot

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


def live(
    rate: int, every: int, seconds: float, snapshots: int, reads: str, progress: Callable[[str], None]
) -> dict[str, Any]:
    """`rate` events a second into 60 sub-windows of `every` milliseconds: per level, periodic queries alone for some
    seconds, then beside snapshot queries, so many of them."""
    engine = Engine()
    engine.stream("events", _events(engine, rate))
    progress(f"filling a window of {COUNT} sub-windows of {every} ms with {rate:,} events/s")
    keeping = engine.keep("events", window=f"{COUNT * every} milliseconds", every=f"{every} milliseconds")
    try:
        pause = threading.Event()
        while keeping.progress()["sub_windows"] < COUNT:
            pause.wait(0.5)
        levels = {name: _level(engine, keeping, name, every, seconds, snapshots, reads, progress) for name in LEVELS}
    finally:
        keeping.stop()
        engine.windows.close()
    told = {"rate": rate, "every": every, "seconds": seconds, "reads": reads, "snapshots": snapshots}
    return {**told, "levels": levels}


def _events(engine: Engine, rate: int) -> Any:
    source = engine.spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    return source.selectExpr("timestamp AS ts", f"value * 7919 % {KEYS} AS k", "CAST(value * 31 % 1000 AS DOUBLE) AS v")


def _level(
    engine: Engine,
    keeping: Any,
    name: str,
    every: int,
    seconds: float,
    snapshots: int,
    reads: str,
    progress: Callable[[str], None],
) -> dict[str, float]:
    progress(f"{PERIODIC} periodic queries, then {snapshots} snapshots beside them: {name}")
    span = COUNT * every
    given: list[tuple[int, float, Snapshot]] = []

    def noting(number: int) -> Callable[[list[Snapshot]], None]:
        return lambda found: given.append((number, time.monotonic(), found[0]))

    running = [
        engine.periodic(
            QUERIES[number % len(QUERIES)].format(range=span, least=number),
            isolation=name, access="WS", reads=reads,
            callback=noting(number),
        )
        for number in range(PERIODIC)
    ]  # fmt: skip
    rng, pause = random.Random(2), threading.Event()
    before, started = keeping.progress(), time.monotonic()
    try:
        pause.wait(seconds)
        alone, asking = list(given), time.monotonic()
        answers = []
        for _ in range(snapshots):
            pause.wait(rng.uniform(0, 2 * every / 1000))
            answers.append(engine.snapshot(SNAPSHOT.format(range=span), isolation=name, access="WS", reads=reads))
    finally:
        for query in running:
            query.stop()
    after, ended = keeping.progress(), time.monotonic()
    beside = given[len(alone) :]
    return {
        "aborted": _aborted([answer for _, _, answer in alone]),
        "freshness": _median([answer.freshness for _, _, answer in alone]),
        "time between executions": _between(given, until=ended),
        "throughput": len(alone) / (asking - started),
        "response": _median([answer.response_time for answer in answers]),
        "freshness of snapshots": _median([answer.freshness for answer in answers]),
        "aborted snapshots": _aborted(answers),
        "freshness beside snapshots": _median([answer.freshness for _, _, answer in beside]),
        "throughput beside snapshots": len(beside) / (ended - asking),
        "updates per second": (after["updates"] - before["updates"]) / (ended - started),
        "rows in the window": after["rows"],
    }


def _aborted(answers: list[Snapshot]) -> float:
    """Attempts that were given up, among all that ended."""
    restarts = sum(answer.restarts for answer in answers)
    return restarts / max(1, restarts + len(answers))


def _between(given: list[tuple[int, float, Snapshot]], until: float) -> float:
    """The usual time between two answers of one query; all of the run, for those that gave no second one."""
    times: dict[int, list[float]] = {number: [] for number in range(PERIODIC)}
    for number, at, _ in given:
        times[number].append(at)
    found = [later - earlier for kept in times.values() for earlier, later in itertools.pairwise(kept)]
    found += [until - min(kept, default=given[0][1]) for kept in times.values() if len(kept) < 2 and given]
    return _median(found)


def _median(values: list[float]) -> float:
    return median(values) if values else float("nan")
