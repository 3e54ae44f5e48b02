"""Random jobs over two streams and random changes of them, and a run of such a job that checks every answer it gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.change.diff import JobDiff, QueryDiff
from sash.engine import Engine
from sash.errors import QueryFailedError
from sash.spark import generations
from sash.spark.generations import Step
from sash.spark.job_change import JobChange
from tests.spark.files import batches_of, made_up_rows, write_batch
from tests.spark.small_jobs import Answers, expected

BATCHES = 16
STREAMS = {"s": batches_of(made_up_rows(BATCHES)), "u": batches_of(made_up_rows(BATCHES, 1))}
KINDS = ("group", "group", "total", "select", "distinct", "levels", "join", "except", "counted", "top")
AGGREGATES = ("COUNT(*)", "SUM(v)", "MAX(v)", "MIN(v)", "COUNT(DISTINCT v)")
NEVER = 1 << 60
"""An answer that is never known to be complete."""


@dataclass(frozen=True)
class RandomQuery:
    """A query whose parts can be changed: windows in ms, a filter by `least`, and how many columns it has."""

    kind: str
    stream: str
    window: int
    least: int
    aggregates: tuple[str, ...]
    columns: int = 2
    strategy: str = "auto"
    mode: str = "changes"

    @property
    def streams(self) -> tuple[str, ...]:
        return ("s", "u") if self.kind in ("join", "except") else (self.stream,)

    @property
    def keyed(self) -> bool:
        """Whether its first column is a key."""
        return self.kind in ("group", "levels")

    @property
    def sql(self) -> str:
        rows = f"{self.stream} [RANGE {self.window} MILLISECONDS]"
        where = f"WHERE v >= {self.least}"
        named = [f"{text} AS a{number}" for number, text in enumerate(self.aggregates[: self.columns])]
        group = f"SELECT k, {', '.join(named)} FROM {rows} {where} GROUP BY k"
        chosen = ", ".join(("k", "v", "ts")[: self.columns])
        match self.kind:
            case "total":
                return f"SELECT {', '.join(named)} FROM {rows} {where}"
            case "levels":
                return f"SELECT a0, COUNT(*) AS n FROM ({group}) AS g GROUP BY a0"
            case "select":
                return f"SELECT {chosen} FROM {rows} {where}"
            case "distinct":
                return f"SELECT DISTINCT {chosen} FROM {rows} {where}"
            case "join":
                other = f"u [RANGE {max(2, self.window // 4)} MILLISECONDS] AS b"
                picked = ", ".join(("a.k AS k", "a.v AS x", "b.v AS y")[: self.columns + 1])
                return (
                    f"SELECT {picked} FROM s [RANGE {max(2, self.window // 6)} MILLISECONDS] AS a JOIN {other} "
                    f"ON a.k = b.k WHERE a.v >= {self.least}"
                )
            case "except":
                other = f"u [RANGE {max(2, self.window // 2)} MILLISECONDS]"
                return f"SELECT k, v FROM s [RANGE {self.window} MILLISECONDS] {where} EXCEPT SELECT k, v FROM {other}"
            case "counted":
                return (
                    f"SELECT k, {named[0]} FROM {self.stream} [PARTITION BY k ROWS {1 + self.window // 8}] GROUP BY k"
                )
            case "top":
                return f"SELECT {chosen} FROM {rows} {where} ORDER BY v DESC, k, ts LIMIT {1 + self.columns}"
        return group

    @staticmethod
    def made(rnd: random.Random) -> RandomQuery:
        """A new query."""
        query = RandomQuery(
            rnd.choice(KINDS), rnd.choice("ssu"), rnd.choice((8, 17, 30, 40)), rnd.choice((0, 0, 2)),
            tuple(rnd.sample(AGGREGATES, 2)), rnd.choice((1, 2, 2)), rnd.choice(("auto", "auto", "negative-tuple", "direct")),
        )  # fmt: skip
        return replace(query, mode=rnd.choice(("changes", "changes", "net", *(["upsert"] if query.keyed else []))))

    def changed(self, rnd: random.Random) -> RandomQuery:
        """The query with a shorter window, a narrower filter, other aggregates, fewer columns or another level."""
        match rnd.choice(("shorter", "narrower", "aggregate", "columns", "level", "longer")):
            case "shorter":
                return replace(self, window=max(2, self.window * rnd.randint(3, 8) // 10))
            case "narrower":
                return replace(self, least=self.least + rnd.randint(1, 3))
            case "aggregate":
                return replace(self, aggregates=tuple(rnd.sample(AGGREGATES, 2)))
            case "columns":
                return replace(self, columns=1)
            case "level" if self.keyed:
                return replace(self, kind="levels" if self.kind == "group" else "group")
            case "longer":
                return replace(self, window=self.window + 10)
        return replace(self, window=max(2, self.window // 2))


def changed_job(
    rnd: random.Random, queries: Mapping[str, RandomQuery], shards: int, number: int
) -> tuple[dict[str, RandomQuery], int]:
    """The queries and shards of the next job: one to three things are different."""
    made = dict(queries)
    for _ in range(rnd.randint(1, 3)):
        match rnd.choice(("add", "drop", "change", "change", "rescale")):
            case "add":
                made[f"q{number}_{len(made)}"] = RandomQuery.made(rnd)
            case "drop" if len(made) > 2:
                del made[rnd.choice(sorted(made))]
            case "rescale":
                shards = rnd.choice([n for n in range(1, 6) if n != shards])
            case _:
                name = rnd.choice(sorted(made))
                made[name] = made[name].changed(rnd)
    return made, shards


@dataclass
class Recorder:
    """A sink that keeps its batches by number, and fails when it is told to."""

    mode: str
    got: dict[int, list[tuple[str, int, tuple[Any, ...]]]] = field(default_factory=dict)
    fails: bool = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        if self.fails:
            raise ValueError("the sink failed")
        table: pa.Table = batch.toArrow()
        self.got[number] = [(row.pop("_op"), row.pop("_ts"), tuple(row.values())) for row in table.to_pylist()]

    def at(self, instant: int) -> Answers:
        """The answer that the sink has at an instant."""
        answer: Answers = Counter()
        keyed: dict[Any, tuple[Any, ...]] = {}
        for number in sorted(self.got):
            for op, ts, row in sorted(self.got[number], key=lambda change: (change[1], change[0] == "+")):
                if ts > instant:
                    continue
                answer[row] += 1 if op == "+" else -1
                keyed.pop(row[0], None)
                if op == "+":
                    keyed[row[0]] = row
        if self.mode == "upsert":
            return Counter(keyed.values())
        assert all(count >= 0 for count in answer.values()), f"at {instant}: {answer}"
        return +answer


class Stopped(Exception):  # noqa: N818  (not an error of the job's)
    """Ends a change at one of its steps."""


@dataclass
class RandomRun:
    """A job that changes, with what its sinks have and from when each answer must be right."""

    spark: SparkSession
    folder: Path
    written: int = 0
    queries: dict[str, RandomQuery] = field(default_factory=dict)
    shards: int = 2
    sinks: dict[str, Recorder] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)

    def put(self, batches: int) -> None:
        """Write files, which the job reads in as many batches."""
        for number in range(self.written, self.written + batches):
            for name, parts in STREAMS.items():
                write_batch(self.folder / name, number, parts[number])
        self.written += batches

    def clock(self, *streams: str) -> int:
        """The time that these streams have reached."""
        return min(row["ts"] for name in streams for row in STREAMS[name][self.written - 1][-1:])

    def run(self, queries: Mapping[str, RandomQuery], shards: int, failing: str | None = None) -> None:
        """Run the job over the files; the sink that fails leaves the batch uncommitted."""
        engine = Engine(self.spark)
        reader = self.spark.readStream.schema("ts long, k string, v long").option("maxFileAge", "36500d")
        for name in STREAMS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            engine.stream(name, reader.option("maxFilesPerTrigger", 1).parquet(str(self.folder / name)))
        with engine:
            job = engine.job(checkpoint=self.folder / "job", trigger="available_now", shards=shards)
            for name, query in queries.items():
                sink = self.sinks.setdefault(name, Recorder(query.mode))
                sink.fails = name == failing
                job.add(name, engine.sql(query.sql, strategy=query.strategy), sink, mode=query.mode)
            running = job.start(on_change="apply")
            try:
                running.await_termination()
            finally:
                running.stop()

    def change(self, queries: Mapping[str, RandomQuery], shards: int, stop: Step | None, old: bool) -> None:
        """Change the job; first stop at a step, if one is given, and then run the old job once more if `old`."""
        with found_differences() as found:
            before = self._delivered()
            if stop is not None:
                with stopped_at(stop) as reached:
                    try:
                        self.run(queries, shards)
                    except Exception:
                        if not reached:
                            raise
                if old and stop != "committed":
                    self.run(self.queries, self.shards)
            if stop != "committed":
                before = self._delivered()
                self.run(queries, shards)
        if found:
            self._note(found[-1], queries, before)
        self.queries, self.shards = dict(queries), shards
        if stop == "committed":
            self.run(queries, shards)

    def _delivered(self) -> dict[str, int]:
        """The last batch that each sink has."""
        return {name: max(sink.got, default=-1) for name, sink in self.sinks.items()}

    def _note(self, diff: JobDiff, queries: Mapping[str, RandomQuery], before: Mapping[str, int]) -> None:
        """Remember from when the answers must be right; a sink that gets a new answer begins anew."""
        now = max(self.clock(name) for name in STREAMS) + 1
        for name, query in queries.items():
            one = diff.query(name)
            if one.verdict == "kept":
                continue
            if one.fresh and name in self.queries:
                self.sinks[name].got = {n: rows for n, rows in self.sinks[name].got.items() if n > before[name]}
            self.since[name] = max(now, complete_from(one))
            self.story.append(f"{name} {one.verdict} from {self.since[name]} ({one.reason}): {query.sql}")

    def check(self, last: int) -> int:
        """Compare the answers at instants since `last`, and at the end, with those of queries that ran alone; the number."""
        compared = 0
        rows = {name: [row for part in parts[: self.written] for row in part] for name, parts in STREAMS.items()}
        for name, query in self.queries.items():
            end = self.clock(*query.streams) - 1
            instants = [end]
            if query.mode == "changes":
                instants += range(max(last, self.since[name]), end, 2_333)
            chosen = [instant for instant in instants if instant >= self.since[name]]
            if not chosen:
                continue
            answers = expected(query.sql, rows, chosen, end)  # type: ignore[arg-type]
            for instant, answer in answers.items():
                found = self.sinks[name].at(instant if query.mode == "changes" else NEVER)
                story = "\n".join(self.story)
                assert found == answer, (
                    f"{name} at {instant}: {query}\nmissing {answer - found}\nsurplus {found - answer}\n{story}"
                )
                compared += 1
        return compared


def complete_from(one: QueryDiff) -> int:
    """From when the answer is complete; a stream that is new is read from its beginning, at 0."""
    if one.complete.instant is not None:
        return one.complete.instant
    return NEVER if one.complete.after is None else one.complete.after + 2


@contextmanager
def found_differences() -> Iterator[list[JobDiff]]:
    """The differences that changes are made by."""
    found: list[JobDiff] = []
    compare = generations.compare

    def recorded(*given: Any) -> JobDiff:
        found.append(compare(*given))
        return found[-1]

    with patch.object(generations, "compare", recorded):
        yield found


@contextmanager
def stopped_at(where: Step) -> Iterator[list[Step]]:
    """Raises at a step of a change; the list has it then."""
    done, reached = JobChange._step, []

    def step(self: JobChange, name: Step) -> None:
        done(self, name)
        if name == where:
            reached.append(name)
            raise Stopped

    with patch.object(JobChange, "_step", step):
        yield reached


def run_chain(spark: SparkSession, folder: Path, seed: int, changes: int) -> int:
    """A random job and random changes of it, each checked; returns how many answers were compared."""
    rnd = random.Random(seed)
    job = RandomRun(spark, folder, shards=rnd.randint(1, 3))
    queries = {f"q{number}": RandomQuery.made(rnd) for number in range(rnd.randint(2, 4))}
    job.queries, job.since = dict(queries), dict.fromkeys(queries, 0)
    job.story = [f"seed {seed}, {job.shards} shards", *(f"{name}: {query}" for name, query in queries.items())]
    job.put(2)
    job.run(queries, job.shards)
    compared, last = job.check(0), 0
    for number in range(changes):
        made, shards = changed_job(rnd, job.queries, job.shards, number)
        stop = rnd.choice((None, *get_args(Step)))
        failing = rnd.choice((None, rnd.choice(sorted(job.queries))))
        last = job.clock(*STREAMS)
        job.story.append(f"change {number}: {shards} shards, stopped at {stop}, failing {failing}")
        if failing is not None:
            job.put(1)
            with pytest.raises(QueryFailedError, match="the sink failed"):
                job.run(job.queries, job.shards, failing)
        job.change(made, shards, stop, old=rnd.random() < 0.3)
        compared += job.check(last)
        job.put(1)
        job.run(job.queries, job.shards)
        compared += job.check(last)
    return compared
