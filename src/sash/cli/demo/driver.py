"""The driver of the story: `sash run` in a process of its own, with its checkpoint, its log and its temporary files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sash
from sash.cli.demo.job import JOB_FILE
from sash.cli.demo.processes import kill_tree
from sash.errors import SashError

_END_SECONDS = 30
COMMAND = f"sash run {JOB_FILE}"


class Driver:
    """One process of the driver, started when it is made; it runs the job in the folder `home`.

    Its session is not the terminal's: a Ctrl-C reaches the demo alone, which then ends the driver.
    """

    def __init__(self, home: Path, number: int, options: Sequence[str] = ()) -> None:
        temporary = home / "tmp"
        temporary.mkdir(exist_ok=True)
        self._log = home / f"driver-{number}.log"
        self._errors = home / f"driver-{number}.err"
        self._read = 0
        with self._log.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603  (our own command)
                [sys.executable, "-m", "sash.cli", "run", JOB_FILE, "--json", *options],
                cwd=home,
                env=_environment(temporary),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def events(self) -> list[dict[str, Any]]:
        """The lines of the job's log since the last call."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [json.loads(line) for line in whole.splitlines() if line.startswith(b"{")]

    def kill(self) -> list[int]:
        """Send SIGKILL to the driver, its JVM and its Python workers, unless it has ended, and return their ids."""
        if self._process.poll() is not None:
            return []
        killed = kill_tree(self.pid)
        self._process.wait()
        return killed

    def end(self) -> None:
        """Stop the driver as Ctrl-C does, and wait; if it takes too long, kill it."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def check(self) -> None:
        """Raise an error if the driver has ended by itself."""
        if self._process.poll() is not None:
            reasons = [event.get("reason") or event.get("message") for event in map(_parsed, self._lines(self._log))]
            written = [str(reason) for reason in reasons if reason] or self._lines(self._errors) or ["no message"]
            raise SashError(f"the job of the demo ended with exit code {self._process.returncode}: {written[-1]}")

    @staticmethod
    def _lines(path: Path) -> list[str]:
        return [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]


def _parsed(line: str) -> dict[str, Any]:
    return dict(json.loads(line)) if line.startswith("{") else {}


def _environment(temporary: Path) -> dict[str, str]:
    """Ours, but all temporary files go to one folder: a process that is killed removes none."""
    paths = [str(Path(sash.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    java = f'{os.environ.get("JDK_JAVA_OPTIONS", "")} "-Djava.io.tmpdir={temporary}" -XX:-UsePerfData'
    return {
        **os.environ,
        "TMPDIR": str(temporary),
        "SPARK_LOCAL_DIRS": str(temporary),
        "JDK_JAVA_OPTIONS": java.strip(),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
