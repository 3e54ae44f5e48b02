"""Readers and a writer of one window store, killed at random: every answer is that of one true state of the window.

Three processes run at a time: the writer, which applies batches of rows that its seed determines, and two readers. SIGKILL
strikes a process a random time after a command was sent. A writer that is killed is started again and applies the same batch
again, as Spark would; a reader that is killed gives no answer, and is started again.

An answer is right if it is the query's answer at its `as_of`, recomputed from the rows; if the window has moved to `as_of` by
an update that the writer was told to make; and if `as_of` is at least as late as the last update that had been acknowledged
when the snapshot was submitted. Whether updates and reads of a level are ordered as it promises is what the tests of
schedulers check on recorded histories; from outside of the processes it cannot be seen.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO, get_args

from campaign.subject import Outcome, Subject
from campaign.window_process import clock_before, rows_of
from sash.window_store.options import IsolationLevel
from tests.window_store.feeding import counted, truth

LEVELS: tuple[str, ...] = get_args(IsolationLevel)
QUERIES = (
    "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s [RANGE {long} MICROSECONDS] GROUP BY k",
    "SELECT k, MIN(v) AS low, MAX(x) AS high FROM s [RANGE {short} MICROSECONDS] GROUP BY k",
    "SELECT COUNT(*) AS n, MAX(v) AS high FROM s [RANGE {long} MICROSECONDS] WHERE v > 1",
    "SELECT MEDIAN(v) AS m, COUNT(DISTINCT v) AS d FROM s [RANGE {long} MICROSECONDS]",
    "SELECT DISTINCT k, v FROM s [RANGE {short} MICROSECONDS]",
    "SELECT k, v, ts FROM s [RANGE {long} MICROSECONDS] ORDER BY v DESC, k, ts LIMIT 3",
    "SELECT v, COUNT(*) AS n FROM s [RANGE {short} MICROSECONDS] GROUP BY v HAVING COUNT(*) > 1",
)
_BATCHES = 24
_SNAPSHOTS = 40
"""The snapshots of each of two readers."""
_HOME = Path(__file__).parents[1]


@dataclass(frozen=True)
class Story:
    """A store, and the seed of its rows, of the queries, and of the moments at which processes are killed."""

    seed: int
    length: int
    count: int
    retain: int
    kills: float


@dataclass(frozen=True)
class _Answered:
    sql: str
    isolation: str
    floor: int
    reply: dict[str, Any]


class _Forks:
    """The process that forks writers and readers; it ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = subprocess.Popen(
            [sys.executable, "-m", "campaign.window_process"],
            cwd=_HOME,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(_HOME / "src"), str(_HOME)])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._running.kill)

    def fork(self, wanted: dict[str, Any]) -> int:
        """A new process, by a descriptor that stands for it even when it has ended."""
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        with self._lock:
            self._running.stdin.write(json.dumps(wanted) + "\n")
            self._running.stdin.flush()
            return os.pidfd_open(int(self._running.stdout.readline()))


_forks = functools.cache(_Forks)


class _Process:
    """A process that is started again after it was killed."""

    def __init__(self, rnd: random.Random, role: str, root: Path, numbers: Sequence[int], pipes: Path) -> None:
        self._rnd = rnd
        self._pipes = pipes
        self._errors = pipes / f"{role}-{id(self)}"
        self._wanted = {"role": role, "root": str(root), "numbers": list(numbers), "errors": str(self._errors)}
        self._running: tuple[int, TextIO, TextIO] | None = None
        self._started = 0

    def send(self, command: dict[str, Any], kill: float) -> dict[str, Any] | None:
        """The reply to a command; None if the process was killed first, which happens with this probability."""
        process, commands, replies = self._running = self._running or self._start()
        commands.write(json.dumps(command) + "\n")
        commands.flush()
        if self._rnd.random() < kill:
            # An answer takes some milliseconds: exponential delays strike in all parts of it.
            timer = threading.Timer(self._rnd.expovariate(1 / 0.008), _kill, (process,))
            timer.start()
            line = replies.readline()
            timer.join()
            self.close()
        else:
            line = replies.readline()
            if not line:
                raise AssertionError(f"a process ended by itself: {self._wanted}: {self._errors.read_text()[-2_000:]}")
        return json.loads(line) if line else None

    def close(self) -> None:
        """End the process."""
        if self._running is not None:
            process, commands, replies = self._running
            _kill(process)
            replies.read()
            for one in (commands, replies):
                with suppress(BrokenPipeError):
                    one.close()
            os.close(process)
            self._running = None

    def _start(self) -> tuple[int, TextIO, TextIO]:
        self._started += 1
        pipes = {name: self._pipes / f"{name}-{id(self)}-{self._started}" for name in ("commands", "replies")}
        for pipe in pipes.values():
            os.mkfifo(pipe)
        process = _forks().fork({**self._wanted, **{name: str(pipe) for name, pipe in pipes.items()}})
        return process, pipes["commands"].open("w"), pipes["replies"].open()


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, signal.SIGKILL)


class _Run:
    """One store, its three processes, and what they have answered."""

    def __init__(self, story: Story, home: Path) -> None:
        self._story = story
        self._root = home / "store"
        self._pipes = home / "pipes"
        self._pipes.mkdir()
        self._clock = 0
        self.sent = 0
        self.answers: list[_Answered] = []
        self.words = Counter[str]()
        self._problems: list[BaseException] = []

    def play(self) -> None:
        """Run the processes to their end."""
        writer = self._process("writer", 0, self._story.length, self._story.count, self._story.retain, self._story.seed)
        first = 3 * self._story.count
        self._write(writer, range(first), kill=0.0)
        threads = [threading.Thread(target=self._guarded, args=(self._keep_writing, writer, first))]
        threads += [threading.Thread(target=self._guarded, args=(self._read, number)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._problems:
            raise self._problems[0]

    def _guarded(self, work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as problem:  # noqa: BLE001  (raised by the thread that plays)
            self._problems.append(problem)

    def _process(self, role: str, number: int, *arguments: int) -> _Process:
        return _Process(random.Random(f"{self._story.seed}.{role}.{number}"), role, self._root, arguments, self._pipes)

    def _keep_writing(self, writer: _Process, first: int) -> None:
        try:
            self._write(writer, range(first, first + _BATCHES), self._story.kills)
        finally:
            writer.close()

    def _write(self, writer: _Process, batches: range, kill: float) -> None:
        for batch in batches:
            after = clock_before(self._story.seed, self._story.length, batch + 1)
            self.sent = after
            while writer.send({"batch": batch}, kill) is None:
                self.words["killed writers in a batch"] += 1
            self._clock = after

    def _read(self, number: int) -> None:
        rnd = random.Random(f"{self._story.seed}.queries.{number}")
        reader = self._process("reader", number)
        span = self._story.length * self._story.count
        try:
            for _ in range(_SNAPSHOTS):
                long, short = rnd.randint(span // 2, span), rnd.randint(1, span // 2)
                sql = rnd.choice(QUERIES).format(long=long, short=short)
                isolation = rnd.choice(LEVELS)
                floor = self._clock
                reply = reader.send({"sql": sql, "isolation": isolation}, self._story.kills)
                if reply is None:
                    self.words["killed readers in a snapshot"] += 1
                else:
                    self.answers.append(_Answered(sql, isolation, floor, reply))
        finally:
            reader.close()


def _check(story: Story) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="sash-campaign-") as root:
        run = _Run(story, Path(root))
        run.play()
    rows = [row for batch in range(3 * story.count + _BATCHES) for row in rows_of(story.seed, story.length, batch)[0]]
    words = run.words
    for answer in run.answers:
        as_of = answer.reply["as_of"]
        about = f"{answer.isolation}, as of {as_of}: {answer.sql}"
        assert as_of % story.length == 0, f"not the end of a sub-window: {about}"
        assert as_of >= answer.floor // story.length * story.length, f"older than the window at {answer.floor}: {about}"
        assert as_of <= run.sent, f"from the future: {about}"
        # Older rows can be in no window, and replaying them took most of a campaign's time.
        kept = [row for row in rows if as_of - story.length * (story.count + 1) <= row["ts"] < as_of]
        expected, found = truth(kept, answer.sql, as_of), counted(answer.reply["rows"])
        assert found == expected, f"missing {expected - found}, surplus {found - expected}: {about}"
        words[f"snapshots {answer.isolation}"] += 1
        words.update(f"snapshots with {name}" for name in ("restarts", "rescans") if answer.reply[name])
    return Outcome(words)


def _made(rnd: random.Random) -> Story:
    length, count, retain = rnd.choice((10, 40)), rnd.choice((2, 4, 8)), rnd.choice((0, 0, 3))
    return Story(rnd.randrange(2**31), length, count, retain, rnd.choice((0.1, 0.25)))


SUBJECT = Subject(
    "snapshots",
    "a writer and two readers of one window store, killed at random; a case is a store that is written batch by batch while "
    "snapshots are read at all isolation levels, each of which must be the answer at its `as_of`, recomputed from the rows",
    _made,
    _check,
    asdict,
    lambda stored: Story(**stored),
)
