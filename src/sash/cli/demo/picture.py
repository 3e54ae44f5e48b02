"""The picture of a moment of the story: charts over one time axis, in the terminal's own colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.text import Text

from sash.cli.demo.chart import columns, sampled
from sash.cli.demo.job import HOP, HOPPING, SLIDING
from sash.cli.demo.moment import Answers, Moment, Uptime, silent_in, verdict
from sash.cli.demo.readings import SECOND, SENSORS

_STEP = SECOND // 2
"""The time that a column of a chart stands for."""
_LABEL, _NOTE = 11, 18
_RIGHT, _WRONG, _ALERT = "green", "magenta", "bold red"
"""ANSI colours that can be read on light and on dark backgrounds."""
_SENSOR_MOST = 6
"""Readings of a sensor in one column that fill its line."""
_FIXED = {1: 14, 2: 18, 3: 18}
"""Lines of an act's picture besides the charts that grow with the screen, at 80 columns."""


@dataclass(frozen=True)
class _Grid:
    """The columns of all charts: `count` steps of time from `start`."""

    start: int
    count: int

    def column(self, at: int) -> int:
        return (at - self.start) // _STEP


def picture(moment: Moment, width: int, height: int) -> Group:
    """The moment on a screen of this size."""
    count = max(10, width - _LABEL - _NOTE - 2)
    first = min(driver.started for driver in moment.drivers) // _STEP
    grid = _Grid(max(first, moment.now // _STEP + 1 - count) * _STEP, count)
    room = height - _FIXED[moment.act.number]
    rows = _windows(moment, grid, min(8, max(2, room // 2))) if moment.act.number == 1 else _sensors(moment, grid, room)
    act = moment.act
    return Group(
        Text(f"Act {act.number} of 3: {act.title}", style="bold"),
        Text(act.narration),
        Text(moment.note, style="bold"),
        Text(""),
        *rows,
        _axis(grid),
        _driver(moment, grid),
        Text(""),
        *(Text(line, no_wrap=True, overflow="ellipsis") for line in summary(moment)),
    )


def summary(moment: Moment) -> list[str]:
    """The answers and the truth at one instant, and the numbers of readings, as two lines of text."""
    answers, arrived = moment.answers, len(moment.readings.times)
    if answers is None:
        return [f"{arrived:,} readings have arrived; there is no answer yet"]
    truth, sliding, hopping = verdict(answers)
    if moment.act.number == 1:
        shown = f"truth {truth}, sliding {_judged(sliding, truth)}, hopping {_judged(hopping, truth)}"
    else:
        expected, reported = silent_in(answers.truth), silent_in(answers.current)
        judged = "right" if reported == expected else f"wrong, the truth is {_listed(expected)}"
        shown = f"silent: {_listed(reported)} ({judged}), sliding {_judged(sliding, truth)}"
    entered = int(np.searchsorted(moment.readings.times, answers.as_of, "right"))
    if moment.drivers[-1].answering:
        numbers = f"batch {answers.batch}: {entered:,} readings have entered, {entered - truth:,} have expired"
    else:
        numbers = f"{arrived - entered:,} readings have arrived since then, and wait to be counted"
    return [f"At {clock_time(answers.as_of)}: {shown}", numbers]


def clock_time(at: int) -> str:
    """The time of day, to the millisecond.

    >>> clock_time(1_767_225_607_250_000)
    '00:00:07.250'
    """
    return f"{datetime.fromtimestamp(at / SECOND, UTC):%H:%M:%S.%f}"[:-3]


def _judged(value: int, truth: int) -> str:
    return f"{value} (right)" if value == truth else f"{value} (wrong by {abs(value - truth)})"


def _listed(sensors: Sequence[str]) -> str:
    return ", ".join(sensors) or "none"


def _windows(moment: Moment, grid: _Grid, height: int) -> Iterable[Text]:
    """The readings that arrive, and below them the counts of both windows, on one scale."""
    arrived = _arrivals(moment.readings.times, grid)
    recent = int(np.count_nonzero(moment.readings.times > moment.now - SECOND))
    yield from _block(["arriving"], columns(arrived, max(arrived), 2), [f"{recent} in the last", "second"], grid)
    counts = {question: _counts(moment.answers, question, grid) for question in (SLIDING, HOPPING)}
    most = max([0, *counts[SLIDING], *counts[HOPPING]])
    for question, label, style in ((SLIDING, [], _RIGHT), (HOPPING, ["every 5 s"], _WRONG)):
        notes = ["no answer yet"] if moment.answers is None else _notes(moment.answers, question)
        chart = columns(counts[question], most, height)
        yield from _block([question, "last 10 s", *label], chart, notes, grid, style)


def _arrivals(times: NDArray[np.int64], grid: _Grid) -> list[int]:
    """The number of readings in each column."""
    at = (times - grid.start) // _STEP
    counts: list[int] = np.bincount(at[(at >= 0) & (at < grid.count)], minlength=grid.count).tolist()
    return counts


def _counts(answers: Answers | None, question: str, grid: _Grid) -> list[float]:
    """The counts of a window at the ends of the columns, up to the instant of the answers."""
    if answers is None:
        return []
    known = min(grid.count, max(0, grid.column(answers.as_of) + 1))
    return sampled(answers.counts[question], grid.start, grid.start + known * _STEP, known)


def _notes(answers: Answers, question: str) -> list[str]:
    truth, sliding, hopping = verdict(answers)
    value, of = (sliding, answers.as_of) if question == SLIDING else (hopping, answers.as_of // HOP * HOP)
    judged = "right" if value == truth else f"wrong by {abs(value - truth)}"
    return [str(value), judged, f"as of {clock_time(of)[:8]}"]


def _sensors(moment: Moment, grid: _Grid, room: int) -> Iterable[Text]:
    """The readings of every sensor, and the count of the sliding window."""
    alerts = {} if moment.answers is None else moment.answers.alerts
    for sensor in SENSORS:
        arrived = _arrivals(moment.readings.of(sensor), grid)
        note = f"ALERT {clock_time(alerts[sensor])}" if sensor in alerts else ""
        style = _ALERT if sensor in alerts else ""
        yield from _block([sensor], columns(arrived, _SENSOR_MOST, 1), [note], grid, style)
    notes = ["no answer yet"] if moment.answers is None else _notes(moment.answers, SLIDING)
    counts = _counts(moment.answers, SLIDING, grid)
    chart = columns(counts, max([0, *counts]), min(8, max(2, room)))
    yield from _block([SLIDING, "last 10 s"], chart, notes, grid, _RIGHT)


def _axis(grid: _Grid) -> Text:
    """Marks at the multiples of five seconds, at which the hopping window moves, and the time at every other one."""
    marks = [" "] * grid.count
    for column in range(grid.count):
        at = grid.start + column * _STEP
        if at % (5 * SECOND) == 0:
            text = f"│{clock_time(at)[:8]}" if at % (10 * SECOND) == 0 else "│"
            if column + len(text) <= grid.count:
                marks[column : column + len(text)] = text
    return _line("time (UTC)", "".join(marks), "", "")


def _driver(moment: Moment, grid: _Grid) -> Text:
    """When a driver was starting (light), answering (solid) or not there."""
    marks = [" "] * grid.count
    for driver in moment.drivers:
        end = moment.now if driver.killed is None else driver.killed
        for column in range(max(0, grid.column(driver.started)), min(grid.count, grid.column(end) + 1)):
            answered = driver.answered is not None and column >= grid.column(driver.answered)
            marks[column] = "█" if answered else "░"
        if driver.killed is not None and 0 <= grid.column(driver.killed) < grid.count:
            marks[grid.column(driver.killed)] = "✗"
    last = moment.drivers[-1]
    note = f"running, {last.pid}" if last.answering else driver_state(last, moment.now)
    return _line("driver", "".join(marks), note, _ALERT if last.killed else "")


def driver_state(driver: Uptime, now: int) -> str:
    """The state of the driver in a few words."""
    if driver.killed is not None:
        return f"killed {(now - driver.killed) / SECOND:.0f} s ago"
    if driver.answered is None:
        return f"starting, {(now - driver.started) / SECOND:.0f} s"
    return "running"


def _block(
    labels: Sequence[str], chart: Sequence[str], notes: Sequence[str], grid: _Grid, style: str = ""
) -> Iterable[Text]:
    """The lines of a chart, with the lines of its label and of its note."""
    for number, line in enumerate(chart):
        label = labels[number] if number < len(labels) else ""
        note = notes[number] if number < len(notes) else ""
        yield _line(label, line.ljust(grid.count), note, style)


def _line(label: str, chart: str, note: str, style: str) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    line.append(label.ljust(_LABEL))
    line.append(f"{chart}  {note}".rstrip(), style=style)
    return line
