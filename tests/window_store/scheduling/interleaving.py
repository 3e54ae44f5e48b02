"""Random interleavings of queries and updates, driven through a scheduler against a window with real contents."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from sash.testing.histories import Recorder
from sash.window_store.scheduling.reader import Commit, Read, Reader, Request
from sash.window_store.scheduling.scheduler import Scheduler

Rows = frozenset[tuple[int, int]]


@dataclass
class Contents:
    """The rows of every sub-window, as pairs (version, update that inserted the row)."""

    rows: dict[int, list[int]] = field(default_factory=dict)

    def add(self, update: int, inserts: dict[int, Rows]) -> None:
        self.rows[update] = [update]
        for version in inserts:
            self.rows[version].append(update)

    def read(self, read: Read) -> Rows:
        return frozenset((read.version, update) for update in self.rows[read.version] if update <= read.as_of)

    def state(self, request: Request, as_of: int) -> Rows:
        return frozenset(row for version in request.window(as_of) for row in self.read(Read(0, version, as_of)))


@dataclass(frozen=True)
class Committed:
    """A committed query: its answer, and the contents of the window as of its state."""

    follows: bool
    as_of: int
    latest: int
    answer: Rows
    truth: Rows
    restarts: int


def interleave(
    rng: random.Random, scheduler: Scheduler, recorder: Recorder, level: str | None = None, inserts: bool = False
) -> list[Committed]:
    """Run the steps of queries and updates in random order until every query has ended."""
    contents = Contents()
    for update in range(scheduler.latest + 1):
        contents.add(update, {})
    pace = rng.random() * 0.5
    waiting = [Request(rng.randint(1, scheduler.n)) for _ in range(rng.randint(1, 4))]
    running: list[tuple[Reader, list[Read], dict[Read, Rows]]] = []
    committed: list[Committed] = []
    budget = 6 * scheduler.n
    while waiting or running:
        if budget and rng.random() < pace:
            budget -= 1
            into = range(max(0, scheduler.latest - scheduler.n + 2), scheduler.latest + 1)
            number = scheduler.latest + 1
            added = {version: frozenset({(version, number)}) for version in into if inserts and rng.random() < 0.5}
            if scheduler.update(lambda number=number, added=added: contents.add(number, added), added, wait=False):  # type: ignore[misc]
                continue
        if waiting and (not running or rng.random() < 0.4):
            reader = scheduler.begin(waiting[-1], level)
            if reader is not None:
                waiting.pop()
                running.append((reader, [], {}))
                continue
            if not running:
                scheduler.update(lambda: contents.add(scheduler.latest + 1, {}), wait=False)
                continue
        at = rng.randrange(len(running))
        reader, under_way, partials = running[at]
        if rng.random() < 0.02:
            scheduler.abort(reader)
            running.pop(at)
            continue
        if len(under_way) < 2 and rng.random() < 0.6 and (read := scheduler.claim(reader)) is not None:
            under_way.append(read)
            partials[read] = contents.read(read)
        elif under_way:
            scheduler.finish(reader, under_way.pop(rng.randrange(len(under_way))))
        if (commit := scheduler.commit(reader)) is not None:
            running.pop(at)
            committed.append(committed_query(scheduler, contents, reader, commit, partials))
    assert scheduler.readers == ()
    return committed


def committed_query(
    scheduler: Scheduler, contents: Contents, reader: Reader, commit: Commit, partials: dict[Read, Rows]
) -> Committed:
    answer = frozenset().union(*(partials[read] for read in commit.reads), *(row.rows for row in commit.passed))
    return Committed(
        reader.isolation.follows,
        commit.as_of,
        scheduler.latest,
        answer,
        contents.state(reader.request, commit.as_of),
        reader.restarts,
    )
