"""What the screen shows of the story at one moment: readings, answers and the driver, each with the time that it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sash.cli.demo.history import Answer, AnswerHistory
from sash.cli.demo.job import HOPPING, SILENT, SLIDING
from sash.cli.demo.readings import SECOND, Readings
from sash.cli.demo.recomputation import recomputed

_DRAWN = 120 * SECOND
"""The time before the last answer for which counts are kept: more than fits on a screen."""


@dataclass(frozen=True)
class Act:
    """A part of the story, with its sentence of narration."""

    number: int
    title: str
    narration: str


@dataclass(frozen=True)
class Uptime:
    """The life of one driver process: its start, its first batch and its end, None where it has not come to that."""

    pid: int
    started: int
    answered: int | None = None
    killed: int | None = None

    @property
    def answering(self) -> bool:
        """Whether the driver is running and has done a batch."""
        return self.answered is not None and self.killed is None


@dataclass(frozen=True)
class Answers:
    """The answers up to the instant `as_of`, all of the same batch, and the recomputed one (`truth`) at that instant."""

    as_of: int
    batch: int
    current: Answer
    truth: Answer
    counts: Mapping[str, Sequence[tuple[int, int]]]
    """The counts of the sliding and of the hopping window, with the times from which they hold."""
    alerts: Mapping[str, int]
    """The silent sensors, with the times of their alerts."""

    @classmethod
    def of(cls, history: AnswerHistory, readings: Readings) -> Self | None:
        """The answers up to the last batch; None before the first one."""
        as_of = history.as_of
        if as_of is None:
            return None
        steps = history.since(as_of - _DRAWN)
        counts = {question: [(at, total(answer, question)) for at, answer in steps] for question in (SLIDING, HOPPING)}
        alerts = {sensor: at for (question, sensor, _), at in history.entered.items() if question == SILENT}
        (truth,) = recomputed(readings, np.array([as_of], np.int64))
        return cls(as_of, history.batch, history.at(as_of), truth, counts, alerts)


@dataclass(frozen=True)
class Moment:
    """A moment of the story.

    `note` says what is being done. The readings are all that have arrived by `now`, and the drivers all that were started;
    there is at least one.
    """

    act: Act
    note: str
    now: int
    readings: Readings
    drivers: tuple[Uptime, ...]
    answers: Answers | None = None


def total(answer: Answer, question: str) -> int:
    """The count of all sensors' readings in the sliding or the hopping window."""
    return sum(n for kind, _, n in answer if kind == question)


def silent_in(answer: Answer) -> list[str]:
    """The sensors that an answer reports as silent."""
    return [sensor for kind, sensor, _ in answer if kind == SILENT]


def verdict(answers: Answers) -> tuple[int, int, int]:
    """The truth, the sliding window's count and the hopping window's, at the same instant."""
    return total(answers.truth, SLIDING), total(answers.current, SLIDING), total(answers.current, HOPPING)
