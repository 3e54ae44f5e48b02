"""Response times of snapshot queries over a window on Spark, beside periodic queries, by isolation level."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from sash.engine import Engine
from sash.spark.kept_window import KeptWindow
from sash.time import SECOND
from sash.window_store.options import ReadOption
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
    rate: int,
    every: int,
    seconds: float,
    snapshots: int,
    repeats: int,
    reads: ReadOption,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Measure each level over a window of 60 sub-windows of `every` milliseconds, filled with `rate` events per second:
    periodic queries alone for some seconds, then beside a number of snapshot queries, several times by turns."""
    engine = Engine()
    engine.stream("events", _events(engine, rate))
    progress(f"filling a window of {COUNT} sub-windows of {every} ms with {rate:,} events/s")
    kept = engine.keep("events", window=f"{COUNT * every} milliseconds", every=f"{every} milliseconds")
    try:
        pause = threading.Event()
        while kept.progress()["sub_windows"] < COUNT:
            pause.wait(0.5)
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in LEVELS}
        for turn in range(repeats):
            for name, made in runs.items():
                progress(
                    f"turn {turn + 1} of {repeats}: {PERIODIC} periodic queries, then {snapshots} snapshots: {name}"
                )
                made.append(_level(engine, kept, name, every, seconds, snapshots, reads, turn))
    finally:
        kept.stop()
        engine.windows.close()
    settings = {"rate": rate, "every": every, "seconds": seconds, "reads": reads, "snapshots": snapshots}
    levels = {name: {key: [run[key] for run in made] for key in made[0]} for name, made in runs.items()}
    return {**settings, "repeats": repeats, "levels": levels}


def _events(engine: Engine, rate: int) -> Any:
    source = engine.spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    return source.selectExpr("timestamp AS ts", f"value * 7919 % {KEYS} AS k", "CAST(value * 31 % 1000 AS DOUBLE) AS v")


def _level(
    engine: Engine,
    kept: KeptWindow,
    name: Any,
    every: int,
    seconds: float,
    snapshots: int,
    reads: ReadOption,
    seed: int,
) -> dict[str, float]:
    span = COUNT * every
    given: list[tuple[int, float, Snapshot]] = []
    ages: list[float] = []

    def record(number: int) -> Callable[[list[Snapshot]], None]:
        return lambda found: given.append((number, time.monotonic(), found[0]))

    running = [
        engine.periodic(
            QUERIES[number % len(QUERIES)].format(range=span, least=number),
            isolation=name, access="WS", reads=reads,
            callback=record(number),
        )
        for number in range(PERIODIC)
    ]  # fmt: skip
    rng, pause = random.Random(seed), threading.Event()
    before, started = kept.progress(), time.monotonic()
    try:
        pause.wait(seconds)
        alone, beginning = list(given), time.monotonic()
        answers = []
        for _ in range(snapshots):
            pause.wait(rng.uniform(0, 2 * every / 1000))
            answers.append(engine.snapshot(SNAPSHOT.format(range=span), isolation=name, access="WS", reads=reads))
            ages.append(time.time() - answers[-1].as_of / SECOND)  # the source stamps its rows with the wall clock
    finally:
        for query in running:
            query.stop()
    after, ended = kept.progress(), time.monotonic()
    beside = given[len(alone) :]
    return {
        "aborted": _aborted([answer for _, _, answer in alone]),
        "freshness": _median([answer.freshness for _, _, answer in alone]),
        "time between executions": _between(given, until=ended),
        "throughput": len(alone) / (beginning - started),
        "response": _median([answer.response_time for answer in answers]),
        "freshness of snapshots": _median([answer.freshness for answer in answers]),
        "age of snapshots": _median(ages),
        "aborted snapshots": _aborted(answers),
        "freshness beside snapshots": _median([answer.freshness for _, _, answer in beside]),
        "throughput beside snapshots": len(beside) / (ended - beginning),
        "updates per second": (after["updates"] - before["updates"]) / (ended - started),
        "rows in the window": after["rows"],
    }


def _aborted(answers: list[Snapshot]) -> float:
    """The share of aborted attempts among all that ended."""
    restarts = sum(answer.restarts for answer in answers)
    return restarts / max(1, restarts + len(answers))


def _between(given: list[tuple[int, float, Snapshot]], until: float) -> float:
    """The median time between two answers of a query; for queries with fewer than two, the time to the end of the run."""
    times: dict[int, list[float]] = {number: [] for number in range(PERIODIC)}
    for number, at, _ in given:
        times[number].append(at)
    gaps = [later - earlier for answered in times.values() for earlier, later in itertools.pairwise(answered)]
    gaps += [until - min(answered, default=given[0][1]) for answered in times.values() if len(answered) < 2 and given]
    return _median(gaps)


def _median(values: list[float]) -> float:
    return median(values) if values else float("nan")
