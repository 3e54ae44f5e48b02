"""The story of `sash demo`: three acts about a job that a driver of its own runs, with `sash run`.

This process only writes readings, reads the changelog of the job, and shows both. So the readings can be seen while Spark
starts, and the driver can be killed like any other process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sash.cli.demo.driver import COMMAND, Driver
from sash.cli.demo.history import AnswerHistory
from sash.cli.demo.job import CHANGES_FOLDER, READINGS_FOLDER, SILENCE, SILENT_SQL, SLACK, SLIDING_SQL
from sash.cli.demo.moment import Act, Answers, Moment, Uptime
from sash.cli.demo.picture import clock_time
from sash.cli.demo.readings import SECOND, Readings, SensorFeed
from sash.cli.demo.recomputation import Comparison, compare, hopping_error
from sash.cli.demo.show import Show
from sash.errors import SashError

ACTS = (
    Act(
        1,
        "rows enter and expire",
        "The sliding window is right at every instant; a hopping window, as Spark's own are, answers the same question "
        "late, and wrongly in between.",
    ),
    Act(
        2,
        "an alert on absence",
        "The pump stops sending: no more rows come from it, and yet the answer changes, at the instant at which its last "
        "reading is five seconds old.",
    ),
    Act(
        3,
        "the driver is killed",
        "The driver dies by SIGKILL while readings keep arriving; started again, it goes on exactly, and answers for the "
        "time in between too.",
    ),
)
_FILE_PERIOD = SECOND // 2
_PATIENCE = 300.0
"""Seconds without a batch after which the story gives up."""
_PHASES = {
    "starting Spark": "Spark is starting; the readings wait in files",
    "Spark started": "Spark has started; the query is planned",
    "started": "the first batch is under way",
}
"""What the events of a job's log tell about its start."""


@dataclass(frozen=True)
class Pace:
    """How many seconds the parts of the story last, besides what they wait for, and a frame of the picture."""

    sliding: float = 14
    alert: float = 4
    warning: float = 3
    down: float = 5
    resumed: float = 5
    frame: float = 0.2


def now_in_microseconds() -> int:
    """The system's clock."""
    return time.time_ns() // 1_000


class Interrupted(Exception):  # noqa: N818  (not an error: the user has seen enough)
    """Raised in the middle of the story when a signal stops it."""


@dataclass(frozen=True)
class Ending:
    """The comparison of all answers with recomputed ones, and the number of readings that came while no driver answered."""

    comparison: Comparison
    unattended: int


class Story:
    """Plays the story in a folder that holds its job, until a signal sets `stop`."""

    def __init__(self, home: Path, show: Show, stop: threading.Event, pace: Pace) -> None:
        self._home, self._show, self._stop, self._pace = home, show, stop, pace
        self._feed = SensorFeed(home / READINGS_FOLDER, now_in_microseconds())
        self._written = now_in_microseconds()
        self._history = AnswerHistory(home / CHANGES_FOLDER)
        self._answers: Answers | None = None
        self._act = ACTS[0]
        self._note = f"$ {COMMAND}"
        self._last_event = time.monotonic()
        self._drivers: list[Uptime] = []
        self._driver = self._start_driver()

    def play(self) -> Ending:
        """Play the three acts, and compare all answers with recomputed ones."""
        self._rows_enter_and_expire()
        self._sensor_falls_silent()
        self._driver_is_killed()
        return self._compare()

    def close(self) -> None:
        """End the driver."""
        self._driver.kill()

    def _rows_enter_and_expire(self) -> None:
        self._until_answered()
        self._note = f"SELECT sensor, COUNT(*) {SLIDING_SQL}"
        self._for(self._pace.sliding)
        answers = self._until_answered()
        readings, history = self._feed.readings, self._history
        hopping = hopping_error(readings, int(readings.times[0]), answers.as_of)
        wrong = len(compare(readings, history, answers.as_of).differences)
        self._show.result(
            f"Act 1: the hopping window was wrong {hopping.share:.0%} of the time, by up to {hopping.largest} readings; "
            f"the sliding window {f'at {wrong} instants' if wrong else 'never'}."
        )

    def _sensor_falls_silent(self) -> None:
        self._act, self._note = ACTS[1], SILENT_SQL
        self._feed.silent.add("pump")
        self._until(lambda: "pump" in self._alerts)
        self._for(self._pace.alert)
        alert, last = self._alerts["pump"], int(self._feed.readings.of("pump")[-1])
        self._show.result(
            f"Act 2: the pump's alert is of {clock_time(alert)}, {(alert - last) / SECOND:.6f} s after its last reading."
        )

    def _driver_is_killed(self) -> None:
        """Kill the driver; meanwhile the pump comes back and the oven falls silent. Start the driver again."""
        self._act, self._note = ACTS[2], f"$ kill -KILL {self._driver.pid}   in {self._pace.warning:.0f} seconds"
        self._for(self._pace.warning)
        killed = self._driver.kill()
        at = now_in_microseconds()
        self._drivers[-1] = replace(self._drivers[-1], killed=at)
        self._feed.silent = {"oven"}
        shown = " ".join(map(str, killed[:2]))
        self._note = f"$ kill -KILL {shown} ...   gone: the driver, its JVM and its workers, {len(killed)} processes"
        self._for(self._pace.down)
        self._driver = self._start_driver()
        self._note = f"$ {COMMAND}"
        target = max(now_in_microseconds(), at + SILENCE + SECOND)
        self._until(lambda: self._answers is not None and self._answers.as_of >= target)
        alert = self._alerts.get("oven")
        due = "" if alert is None else f": the oven's alert is of {clock_time(alert)}, when no driver was answering"
        self._note = f"The new driver has caught up{due}"
        self._for(self._pace.resumed)

    def _compare(self) -> Ending:
        """Let the driver read all files, and compare."""
        self._note = "Comparing with a recomputation from the files"
        readings = Readings.in_folder(self._home / READINGS_FOLDER)
        end = int(readings.times[-1]) - SLACK
        self._until(lambda: self._history.clock is not None and self._history.clock >= end, feeding=False)
        first, second = self._drivers
        assert self._answers is not None
        assert first.killed is not None
        assert second.answered is not None
        unattended = np.count_nonzero((readings.times > first.killed) & (readings.times <= second.answered))
        return Ending(compare(readings, self._history, self._answers.as_of), int(unattended))

    @property
    def _alerts(self) -> dict[str, int]:
        return {} if self._answers is None else dict(self._answers.alerts)

    def _start_driver(self) -> Driver:
        driver = Driver(self._home, len(self._drivers) + 1)
        self._drivers.append(Uptime(driver.pid, now_in_microseconds()))
        return driver

    def _until_answered(self) -> Answers:
        self._until(lambda: self._answers is not None)
        assert self._answers is not None
        return self._answers

    def _for(self, seconds: float) -> None:
        end = now_in_microseconds() + round(seconds * SECOND)
        self._until(lambda: now_in_microseconds() >= end)

    def _until(self, condition: Callable[[], bool], *, feeding: bool = True) -> None:
        """Show the story going on, one frame at least, until the condition holds."""
        while True:
            now = now_in_microseconds()
            if feeding and now - self._written >= _FILE_PERIOD:
                self._feed.write_until(now)
                self._written = now
            self._read_events(now)
            moment = Moment(self._act, self._note, now, self._feed.readings, tuple(self._drivers), self._answers)
            self._show.update(moment)
            if condition():
                return
            if self._stop.wait(self._pace.frame):
                raise Interrupted

    def _read_events(self, now: int) -> None:
        """Take in what the driver has logged: its phases while it starts, and every batch."""
        events, driver = self._driver.events(), self._drivers[-1]
        for event in events:
            if event["event"] == "batch":
                self._history.advance(event["batch"], event["watermark"])
                driver = self._drivers[-1] = replace(driver, answered=driver.answered or now)
            elif driver.answered is None and event["event"] in _PHASES:
                self._note = f"$ {COMMAND}   {_PHASES[event['event']]}"
        if events:
            self._last_event = time.monotonic()
            self._answers = Answers.of(self._history, self._feed.readings)
        elif driver.killed is None:
            self._driver.check()
            if time.monotonic() - self._last_event > _PATIENCE:
                raise SashError(f"the job of the demo has not logged anything for {_PATIENCE:.0f} seconds")
