"""The answers of the story recomputed from the readings alone, by their definition, and compared with those of the job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sash.cli.demo.history import Answer, AnswerHistory, Row
from sash.cli.demo.job import HOP, HOPPING, MEMORY, SILENCE, SILENT, SLIDING, WINDOW
from sash.cli.demo.readings import Readings

Times = NDArray[np.int64]


def recomputed(readings: Readings, at: Times) -> list[Answer]:
    """The answer at each of these instants: counts per sensor over both windows, and the silent sensors."""
    rows: list[list[Row]] = [[] for _ in at]
    for sensor in np.unique(readings.sensors).tolist():
        times = readings.of(sensor)
        counts = {SLIDING: _count(times, at, WINDOW), HOPPING: _count(times, at // HOP * HOP, WINDOW)}
        for question, numbers in counts.items():
            for position in np.flatnonzero(numbers).tolist():
                rows[position].append((question, sensor, int(numbers[position])))
        silent = (_count(times, at, MEMORY) > 0) & (_count(times, at, SILENCE) == 0)
        for position in np.flatnonzero(silent).tolist():
            rows[position].append((SILENT, sensor, 0))
    return [tuple(sorted(answer)) for answer in rows]


def _count(times: Times, at: Times, length: int) -> Times:
    """The number of times in the `length` before each instant, the instant itself included."""
    counts: Times = np.searchsorted(times, at, "right") - np.searchsorted(times, at - length, "right")
    return counts


def instants(readings: Readings, since: int, until: int) -> Times:
    """The instants of a time at which an answer may change: where readings enter or leave a window, or a window hops."""
    ends = [readings.times + length for length in (0, SILENCE, WINDOW, MEMORY)]
    hops = np.arange(since // HOP + 1, until // HOP + 1, dtype=np.int64) * HOP
    at = np.unique(np.concatenate([*ends, hops, np.array([since], np.int64)]))
    return at[(at >= since) & (at <= until)]


@dataclass(frozen=True)
class Comparison:
    """The answers of the job against recomputed ones: `differences` are instants with the former and the latter."""

    readings: int
    instants: int
    differences: tuple[tuple[int, Answer, Answer], ...]


def compare(readings: Readings, history: AnswerHistory, until: int) -> Comparison:
    """Compare the answers at every instant, from the first reading to `until`, at which one of both may change."""
    since = int(readings.times[0])
    changed = np.array([instant for instant in history.instants if since <= instant <= until], np.int64)
    at = np.union1d(instants(readings, since, until), changed)
    both = zip(at.tolist(), recomputed(readings, at), strict=True)
    answers = ((instant, history.at(instant), truth) for instant, truth in both)
    differences = tuple((instant, answer, truth) for instant, answer, truth in answers if answer != truth)
    return Comparison(int(np.count_nonzero(readings.times <= until)), len(at), differences)


@dataclass(frozen=True)
class HoppingError:
    """How wrong the hopping window was: the part of the time, and the largest difference."""

    share: float
    largest: int


def hopping_error(readings: Readings, since: int, until: int) -> HoppingError:
    """Compare the hopping window's count of all readings with the sliding one's, over a time."""
    at = instants(readings, since, until)
    off = np.abs(_count(readings.times, at // HOP * HOP, WINDOW) - _count(readings.times, at, WINDOW))
    wrong = np.diff(np.append(at, until))[off > 0].sum()
    return HoppingError(float(wrong) / max(1, until - since), int(off.max()))
