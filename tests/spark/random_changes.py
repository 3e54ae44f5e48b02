"""Random jobs over two streams and random changes of them, and a run of such a job that checks every answer it gives.

python -m tests.spark.random_changes FOLDER: the change that a parent process has put into FOLDER/killed.pickle, in a process
that kills itself at a step.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from tests.spark.files import Rows, batches_of, made_up_rows, write_batch
from tests.spark.random_queries import RandomQuery, changed_job
from tests.spark.small_jobs import Answers, expected


def updates_of(rows: Rows, every: int) -> Rows:
    """Updates of a relation at the times of some of the rows: the last one of each key."""
    return sorted({row["k"]: row for row in rows[::every]}.values(), key=lambda row: row["ts"])


BATCHES = 16
STREAMS = {"s": batches_of(made_up_rows(BATCHES)), "u": batches_of(made_up_rows(BATCHES, 1))}
UPDATES = [updates_of(rows, 7 + number % 2) for number, rows in enumerate(STREAMS["s"])]
"""Those of the relations `t` and `n`."""
NEVER = 1 << 60
"""An answer that is never known to be complete."""


@dataclass
class Recorder:
    """A sink that keeps its batches by number in a folder, which outlives a process, and fails when it is told to."""

    folder: Path
    mode: str
    fails: bool = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        if self.fails:
            raise ValueError("the sink failed")
        table: pa.Table = batch.toArrow()
        changes = [(row.pop("_op"), row.pop("_ts"), list(row.values())) for row in table.to_pylist()]
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f"{number}.draft"
        draft.write_text(json.dumps(changes))
        draft.rename(self.folder / f"{number}.json")

    @property
    def numbers(self) -> list[int]:
        """The batches that it has."""
        return sorted(int(path.stem) for path in self.folder.glob("*.json"))

    def forget(self, last: int) -> None:
        """Remove the batches up to a number."""
        for number in self.numbers:
            if number <= last:
                (self.folder / f"{number}.json").unlink()

    def at(self, instant: int) -> Answers:
        """The answer that the sink has at an instant."""
        answer: Answers = Counter()
        keyed: dict[Any, tuple[Any, ...]] = {}
        for number in self.numbers:
            got = json.loads((self.folder / f"{number}.json").read_text())
            for op, ts, values in sorted(got, key=lambda change: (change[1], change[0] == "+")):
                if ts > instant:
                    continue
                row = tuple(values)
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
    words: Counter[str] = field(default_factory=Counter)
    """What the changes were, counted."""

    def put(self, batches: int) -> None:
        """Write files, which the job reads in as many batches."""
        for number in range(self.written, self.written + batches):
            for name, parts in ("updates", UPDATES), *STREAMS.items():
                write_batch(self.folder / name, number, parts[number])
        self.written += batches

    def clock(self, *streams: str) -> int:
        """The time that these streams have reached."""
        return min(row["ts"] for name in streams for row in STREAMS[name][self.written - 1][-1:])

    def run(self, queries: Mapping[str, RandomQuery], shards: int, failing: str | None = None) -> None:
        """Run the job over the files; the sink that fails leaves the batch uncommitted."""
        with engine_of(self.spark, self.folder) as engine:
            job = engine.job(checkpoint=self.folder / "job", trigger="available_now", shards=shards)
            for name, query in queries.items():
                sink = self.sinks.setdefault(name, Recorder(self.folder / "sinks" / name, query.mode))
                sink.fails = name == failing
                job.add(name, engine.sql(query.sql, **query.options), sink, mode=query.mode)
            running = job.start(on_change="apply")
            try:
                running.await_termination()
            finally:
                running.stop()

    def change(
        self, queries: Mapping[str, RandomQuery], shards: int, stop: Step | None, old: bool, kill: bool = False
    ) -> None:
        """Change the job; first stop at a step, if one is given, and then run the old job once more if `old`.

        It is stopped by an exception, or in a process of its own that is killed.
        """
        with found_differences() as found:
            before = self._delivered()
            if stop is not None and kill:
                found.extend(self._killed(queries, shards, stop))
            elif stop is not None:
                with stopped_at(stop) as reached:
                    try:
                        self.run(queries, shards)
                    except Exception:
                        if not reached:
                            raise
            if stop is not None and old and stop != "committed":
                self.run(self.queries, self.shards)
            if stop != "committed":
                before = self._delivered()
                self.run(queries, shards)
        if found:
            self._note(found[-1], queries, before)
        self.queries, self.shards = dict(queries), shards
        if stop == "committed":
            self.run(queries, shards)

    def _killed(self, queries: Mapping[str, RandomQuery], shards: int, stop: Step) -> list[JobDiff]:
        """Run the change in another process, which kills itself at a step; the difference that it found, if there is one."""
        (self.folder / "killed.pickle").write_bytes(pickle.dumps((self.written, dict(queries), shards, stop)))
        (self.folder / "difference.pickle").unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.spark.random_changes", str(self.folder)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if not done.returncode:
            return []
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
        return [pickle.loads((self.folder / "difference.pickle").read_bytes())]

    def _delivered(self) -> dict[str, int]:
        """The last batch that each sink has."""
        return {name: max(sink.numbers, default=-1) for name, sink in self.sinks.items()}

    def _note(self, diff: JobDiff, queries: Mapping[str, RandomQuery], before: Mapping[str, int]) -> None:
        """Remember from when the answers must be right; a sink that gets a new answer begins anew."""
        now = max(self.clock(name) for name in STREAMS) + 1
        for name, query in queries.items():
            one = diff.query(name)
            self.words[f"verdict {one.verdict}"] += 1
            if one.verdict == "kept":
                continue
            if one.fresh and name in self.queries:
                self.sinks[name].forget(before[name])
            self.since[name] = max(now, complete_from(one))
            self.story.append(f"{name} {one.verdict} from {self.since[name]} ({one.reason}): {query.sql}")

    def check(self, last: int) -> int:
        """Compare the answers at instants since `last`, and at the end, with those of queries that ran alone; the number."""
        compared = 0
        rows = {name: [row for part in parts[: self.written] for row in part] for name, parts in STREAMS.items()}
        for name, query in self.queries.items():
            end = self.clock(*query.streams) - 1 - (query.tau or 0) * 1_000
            instants = [end]
            if query.mode == "changes":
                instants += range(max(last, self.since[name]), end, 2_333)
            chosen = [instant for instant in instants if instant >= self.since[name]]
            if not chosen:
                continue
            answers = expected(query.sql, rows, chosen, end, stored_updates(self.written))
            for instant, answer in answers.items():
                found = self.sinks[name].at(instant if query.mode == "changes" else NEVER)
                story = "\n".join(self.story)
                assert found == answer, (
                    f"{name} at {instant}: {query}\nmissing {answer - found}\nsurplus {found - answer}\n{story}"
                )
                compared += 1
        return compared


def engine_of(spark: SparkSession, folder: Path) -> Engine:
    """An engine whose streams read the files in the folder, one per micro-batch; relations read all updates that there are."""
    engine = Engine(spark)
    reader = spark.readStream.schema("ts long, k string, v long").option("maxFileAge", "36500d")
    for name in (*STREAMS, "updates"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in STREAMS:
        engine.stream(name, reader.option("maxFilesPerTrigger", 1).parquet(str(folder / name)))
    for name, retroactive in (("t", True), ("n", False)):
        updates = reader.parquet(str(folder / "updates")).withColumnRenamed("v", "w")
        engine.relation(name, updates, key="k", retroactive=retroactive, changes=True, time="ts")
    return engine


def stored_updates(batches: int) -> Rows:
    """The updates of the relations in the first batches, as a replay takes them."""
    return [{"ts": row["ts"], "_op": "+", "k": row["k"], "w": row["v"]} for part in UPDATES[:batches] for row in part]


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
def stopped_at(where: Step, stop: Callable[[], None] | None = None) -> Iterator[list[Step]]:
    """Raises, or calls `stop`, at a step of a change; the list has it then."""
    done, reached = JobChange._step, []

    def step(self: JobChange, name: Step) -> None:
        done(self, name)
        if name == where:
            reached.append(name)
            if stop is not None:
                stop()
            raise Stopped

    with patch.object(JobChange, "_step", step):
        yield reached


def run_killed(folder: Path) -> None:
    """The change that the parent process has asked for, until it kills itself."""
    from sash.spark.session import embedded_session

    written, queries, shards, stop = pickle.loads((folder / "killed.pickle").read_bytes())
    job = RandomRun(embedded_session(cores=2), folder, written)
    with found_differences() as found:

        def end() -> None:
            (folder / "difference.pickle").write_bytes(pickle.dumps(found[-1]))
            os.kill(os.getpid(), signal.SIGKILL)

        with stopped_at(stop, end):
            job.run(queries, shards)


def run_chain(
    spark: SparkSession, folder: Path, seed: int, changes: int, kill: bool = False, related: bool = False
) -> Counter[str]:
    """A random job and random changes of it, each checked; returns what they were, and how many answers were compared.

    Changes that are stopped are stopped by an exception, or, if `kill`, by killing their process. If `related`, some queries
    join a relation, or have an interval of releases.
    """
    rnd = random.Random(seed)
    made_query = RandomQuery.any if related else RandomQuery.made
    job = RandomRun(spark, folder, shards=rnd.randint(1, 3))
    queries = {f"q{number}": made_query(rnd) for number in range(rnd.randint(2, 4))}
    job.queries, job.since = dict(queries), dict.fromkeys(queries, 0)
    job.story = [f"seed {seed}, {job.shards} shards", *(f"{name}: {query}" for name, query in queries.items())]
    job.put(2)
    job.run(queries, job.shards)
    last = 0
    job.words["answers compared"] += job.check(last)
    for number in range(changes):
        made, shards = changed_job(rnd, job.queries, job.shards, number, made_query)
        stop = rnd.choice(get_args(Step) if kill else (None, *get_args(Step)))
        failing = rnd.choice((None, rnd.choice(sorted(job.queries))))
        last = job.clock(*STREAMS)
        job.words["changes"] += 1
        job.words["rescales"] += shards != job.shards
        job.words[f"{'killed' if kill else 'stopped'} at {stop}"] += 1
        job.words["failing sinks"] += failing is not None
        job.story.append(f"change {number}: {shards} shards, stopped at {stop}, failing {failing}")
        if failing is not None:
            job.put(1)
            with pytest.raises(QueryFailedError, match="the sink failed"):
                job.run(job.queries, job.shards, failing)
        job.change(made, shards, stop, old=rnd.random() < 0.3, kill=kill)
        job.words["answers compared"] += job.check(last)
        job.put(1)
        job.run(job.queries, job.shards)
        job.words["answers compared"] += job.check(last)
    return job.words


if __name__ == "__main__":
    run_killed(Path(sys.argv[1]))
