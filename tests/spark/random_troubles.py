"""Random jobs in trouble: a sink and an expression that fail, a stream that stalls, restarts; and a check of every answer.

A query that is parked is resumed some batches later. All others must have every answer meanwhile, up to the clocks of the
streams that they read.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sash.running_job import RunningJob
from tests.spark.files import Rows, write_batch
from tests.spark.random_changes import NEVER, STREAMS, UPDATES, Recorder, engine_of, stored_updates
from tests.spark.random_queries import RandomQuery
from tests.spark.small_jobs import expected

BATCHES = 12
STEP = 1_777
BAD = 20
"""The value by which a query divides by zero; others are smaller."""
FAILING = {
    "operator": "SELECT k, 100 / (MAX(v) - 20) AS total FROM s [RANGE {window} MILLISECONDS] GROUP BY k",
    "leg": "SELECT k, SUM(100 / (v - 20)) AS total FROM s [RANGE {window} MILLISECONDS] GROUP BY k",
    "two levels": (
        "SELECT n, COUNT(*) AS groups FROM (SELECT k, 100 DIV (MAX(v) - 20) AS n FROM s [RANGE {window} MILLISECONDS] "
        "GROUP BY k) GROUP BY n"
    ),
}
"""Queries of which an expression fails on the bad row, by where it is evaluated."""


@dataclass(frozen=True)
class Troubles:
    """What goes wrong in which batches; ranges are of batches."""

    stalled: range
    """Batches in which stream `u` has no rows."""
    full: range
    """Batches in which the sink of `q0` fails."""
    bad: int
    """The batch with the row on which `fails` fails."""
    failing: str
    window: int
    restarts: frozenset[int]
    outboxes: dict[str, int]

    @staticmethod
    def made(rnd: random.Random) -> Troubles:
        stall, full = rnd.randint(1, 4), rnd.randint(1, 4)
        return Troubles(
            range(stall, stall + rnd.randint(1, 3)),
            range(full, full + rnd.randint(1, 3)),
            rnd.randint(1, 4),
            rnd.choice(sorted(FAILING)),
            rnd.choice((17, 30)),
            frozenset(rnd.sample(range(1, BATCHES), rnd.randint(0, 2))),
            {name: rnd.choice((1, 1 << 20)) for name in ("q0", "fails")},
        )


@dataclass
class TroubledRun:
    """A job, with what its sinks have and from when each answer must be right."""

    spark: SparkSession
    folder: Path
    queries: dict[str, RandomQuery]
    troubles: Troubles
    shards: int
    sinks: dict[str, Recorder] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    rows: dict[str, Rows] = field(default_factory=lambda: {name: [] for name in STREAMS})
    words: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        modes = {name: query.mode for name, query in self.queries.items()} | {"fails": "changes"}
        self.sinks = {name: Recorder(self.folder / "sinks" / name, mode) for name, mode in modes.items()}
        self.since = dict.fromkeys(modes, 0)
        self.files = dict.fromkeys(STREAMS, 0)

    @property
    def failing(self) -> str:
        """The query whose expression fails."""
        return FAILING[self.troubles.failing].format(window=self.troubles.window)

    def start(self) -> RunningJob:
        self.engine = engine_of(self.spark, self.folder)
        job = self.engine.job(checkpoint=self.folder / "job", shards=self.shards)
        for name, query in self.queries.items():
            on_error: Any = "suspend" if name == "q0" else "fail"
            outbox = self.troubles.outboxes.get(name)
            planned = self.engine.sql(query.sql, **query.options)  # type: ignore[arg-type]
            job.add(name, planned, self.sinks[name], mode=query.mode, on_error=on_error, outbox=outbox)  # type: ignore[arg-type]
        outbox = self.troubles.outboxes["fails"]
        job.add("fails", self.failing, self.sinks["fails"], mode="changes", on_error="suspend", outbox=outbox)
        return job.start()

    def write(self, name: str, batch: int) -> None:
        """Write the rows of a batch; one of them has the bad value."""
        rows = [dict(row) for row in STREAMS[name][batch]]
        if name == "s" and batch == self.troubles.bad:
            rows[10]["v"] = BAD
        write_batch(self.folder / name, self.files[name], rows)
        self.files[name] += 1
        self.rows[name] += rows

    def run(self) -> None:
        troubles, running = self.troubles, self.start()
        try:
            late: list[int] = []
            for batch in range(BATCHES):
                if batch in troubles.restarts:
                    running.stop()
                    running = self.start()
                    self.words["restarts"] += 1
                self.sinks["q0"].fails = batch in troubles.full
                write_batch(self.folder / "updates", batch, UPDATES[batch])
                late.append(batch)
                if batch not in troubles.stalled:
                    for missed in late:
                        self.write("u", missed)
                    late = []
                self.write("s", batch)
                running.process_all()
                self.resume(running, batch)
                if batch % 2 or batch == BATCHES - 1:
                    self.check(batch)
            states = {name: query.state for name, query in running.queries.items()}
            assert all(state.startswith("running") for state in states.values()), states
        finally:
            running.stop()
            self.engine.close()

    def resume(self, running: RunningJob, batch: int) -> None:
        """Let the parked queries go on whose trouble is over; until then, nothing is known of their answers."""
        for name, over in (("q0", self.troubles.full.stop), ("fails", self.troubles.bad + 4)):
            query = running.queries[name]
            if not query.parked:
                if self.since[name] == NEVER:
                    since = self.clock(*(self.queries[name].streams if name == "q0" else "s"))
                    self.since[name] = since + (self.troubles.window * 1_000 if self.troubles.failing == "leg" else 0)
                continue
            self.words[f"batches with {name} parked"] += 1
            self.since[name] = NEVER
            if batch + 1 < over:
                continue
            self.sinks["q0"].fails = False
            query.resume()
            if name == "q0":
                exact = self.troubles.outboxes[name] > 1
                self.since[name] = 0 if exact else self.clock(*self.queries[name].streams)
                self.words[f"resumed with {'every change' if exact else 'a net difference'}"] += 1

    def clock(self, *streams: str) -> int:
        """The least time that these streams have reached."""
        return min(self.rows[name][-1]["ts"] if self.rows[name] else 0 for name in streams)

    def check(self, batch: int) -> None:
        """Compare the answers since two batches ago, and those of the instant at the end of which sinks have only the last."""
        for name, query in self.queries.items():
            end = self.clock(*query.streams) - 1 - (query.tau or 0) * 1_000
            self._check(name, query.sql, query.mode, end, batch)
        self._check("fails", self.failing, "changes", self.clock("s") - 1, batch)

    def _check(self, name: str, sql: str, mode: str, end: int, batch: int) -> None:
        first = max(self.since[name], 0 if batch == BATCHES - 1 else end - 60_000)
        chosen = [*range(first, end, STEP), end] if mode == "changes" else [end]
        chosen = [instant for instant in chosen if instant >= max(first, 0)]
        if not chosen:
            return
        rows = self.rows
        if name == "fails":
            rows = {"s": [row if row["v"] != BAD else {**row, "v": 0} for row in rows["s"]]}
            bad = self.rows["s"][self.troubles.bad * 40 + 10]["ts"] if batch >= self.troubles.bad else NEVER
            gone = bad + self.troubles.window * 1_000
            chosen = [instant for instant in chosen if instant < bad or instant >= gone]
        if not chosen:
            return
        answers = expected(sql, rows, chosen, end, stored_updates(batch + 1))
        for instant, answer in answers.items():
            found = self.sinks[name].at(instant if mode == "changes" else NEVER)
            assert found == answer, (
                f"{name} at {instant} after batch {batch}: {sql}\nmissing {answer - found}\nsurplus {found - answer}\n"
                f"{self.troubles}\n{self.queries}"
            )
            self.words["answers compared"] += 1
            self.words["answers of queries that had been parked"] += name in ("q0", "fails") and self.since[name] > 0


def run_troubles(spark: SparkSession, folder: Path, seed: int) -> Counter[str]:
    """A random job of three to six queries in trouble, each checked after every batch; returns what happened, counted."""
    rnd = random.Random(seed)
    queries = {f"q{number}": RandomQuery.any(rnd) for number in range(rnd.randint(2, 5))}
    run = TroubledRun(spark, folder, queries, Troubles.made(rnd), rnd.randint(1, 3))
    run.run()
    return run.words
