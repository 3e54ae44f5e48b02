"""Readings, histories and moments that are the same in every run."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from sash.cli.demo.history import Answer, AnswerHistory
from sash.cli.demo.moment import Answers, Moment, Uptime
from sash.cli.demo.readings import SECOND, Readings, SensorFeed
from sash.cli.demo.recomputation import instants, recomputed
from sash.cli.demo.story import ACTS

START = 1_767_225_603_250_000
"""2026-01-01 00:00:03.25, in microseconds."""
STEP = SECOND // 4
SILENT_FROM, BACK_FROM = 80, 120
"""The steps from which the pump is silent, and sends again."""


@cache
def readings(steps: int) -> Readings:
    """The readings of this many quarters of a second."""
    with tempfile.TemporaryDirectory() as folder:
        feed = SensorFeed(Path(folder), START)
        for step in range(1, steps + 1):
            feed.silent = {"pump"} if SILENT_FROM <= step < BACK_FROM else set()
            feed.write_until(START + step * STEP)
        return feed.readings


def history(given: Readings, clock: int) -> AnswerHistory:
    """The history of the right answers, up to the clock."""
    found = AnswerHistory(Path("nowhere"))
    at = instants(given, int(given.times[0]), clock - 1)
    before: Answer = ()
    for instant, answer in zip(at.tolist(), recomputed(given, at), strict=True):
        gone, come = set(before) - set(answer), set(answer) - set(before)
        found.apply([*((instant, "-", row) for row in gone), *((instant, "+", row) for row in come)])
        before = answer
    found.batch, found.clock = 17, clock
    return found


@cache
def moment(act: int, steps: int, *, answered: bool = True, killed: bool = False) -> Moment:
    """A moment some steps after the start; the answers are 1.3 s old, or, of a driver that was killed, 5 s."""
    given, now = readings(steps), START + steps * STEP
    clock = now - (5 * SECOND if killed else 1_300_000)
    answers = Answers.of(history(given, clock), given) if answered else None
    driver = Uptime(4711, START, START + 9 * SECOND if answered else None, now - 4 * SECOND if killed else None)
    return Moment(ACTS[act - 1], "$ sash run job.sql", now, given, (driver,), answers)
