"""The driver processes of a story: one that runs the job, and one whose Spark is started while the first runs."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

_ROOT = Path(__file__).parents[2]
_LIMIT = 400.0
"""Seconds after which a driver that does not answer has failed."""


class DriverProcess:
    """A driver in a session of its own, with its own folder of local files."""

    def __init__(self, home: Path, number: int, master: str, environment: Mapping[str, str]) -> None:
        self.local = home / "local" / str(number)
        self.local.mkdir(parents=True)
        self._mark = f"{home}/{number}"
        self.log = home / f"driver-{number}.log"
        paths = os.pathsep.join([str(_ROOT), str(_ROOT / "src")])
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "campaign.faults.driver", str(home), master],
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    **environment,
                    "PYTHONPATH": paths,
                    "SPARK_LOCAL_DIRS": str(self.local),
                    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
                    "SASH_CAMPAIGN_DRIVER": self._mark,
                },
            )

    def send(self, command: dict[str, Any], attend: Callable[[], None] = lambda: None) -> dict[str, Any] | None:
        """The reply to a command; None if the driver died. Meanwhile `attend` is called again and again."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        until = time.monotonic() + _LIMIT
        while time.monotonic() < until:
            attend()
            if select.select([self.process.stdout], [], [], 0.02)[0]:
                line = self.process.stdout.readline()
                return json.loads(line) if line else None
        raise AssertionError(
            f"the driver did not answer {command['do']} in {_LIMIT:g} s: {self.log}\n{self.last_words()}"
        )

    def last_words(self) -> str:
        """The end of the driver's log."""
        return self.log.read_text(errors="replace")[-3_000:]

    def end(self) -> None:
        """Kill what is left of the driver, its JVM and its workers, and remove their files."""
        for process in psutil.process_iter():
            try:
                if process.environ().get("SASH_CAMPAIGN_DRIVER") == self._mark:
                    process.kill()
            except psutil.Error:
                continue
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        shutil.rmtree(self.local, ignore_errors=True)


class Drivers:
    """The driver of a job, and the next one."""

    def __init__(self, home: Path, master: str, environment: Mapping[str, str]) -> None:
        self._home = home
        self._master = master
        self._environment = environment
        self._made = 0
        self.current = self._launched()
        self._next: DriverProcess | None = None

    def replace(self) -> None:
        """End the current driver; the next one takes its place."""
        self.current.end()
        self.current = self._next or self._launched()
        self._next = None

    def prepare(self) -> None:
        """Launch the next driver, so that its Spark is started when it is needed."""
        self._next = self._next or self._launched()

    def end(self) -> None:
        """End all drivers."""
        self.current.end()
        if self._next is not None:
            self._next.end()

    def _launched(self) -> DriverProcess:
        self._made += 1
        return DriverProcess(self._home, self._made, self._master, self._environment)
