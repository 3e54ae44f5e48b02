"""Previews of queries: a process of low priority with a Spark of its own runs them, one at a time.

It declares the streams of the job's script, and so reads their sources again. The job's session is not touched: what a
preview costs is bounded by what the operating system gives to a process of the lowest priority, and whatever goes wrong
ends that process. It is kept for some minutes, because Spark takes seconds to start.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from sash.errors import ControlError, SqlSyntaxError

Values = dict[str, Any]

MOST_SECONDS = 30.0
MOST_ROWS = 1_000
_START_SECONDS = 90.0
_IDLE_SECONDS = 180.0


class Preview:
    """Runs previews in a process, which is started when it is first needed."""

    def __init__(self, idle: float = _IDLE_SECONDS) -> None:
        self._idle = idle
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._timer: threading.Timer | None = None

    def run(self, script: str, sql: str, seconds: float, rows: int) -> Values:
        """The answer of a SELECT over the streams of a script after some seconds."""
        if not self._lock.acquire(blocking=False):
            raise ControlError("another preview is running: try again in some seconds")
        try:
            if self._timer is not None:
                self._timer.cancel()
            found = self._ask(
                {"script": script, "sql": sql, "seconds": min(seconds, MOST_SECONDS), "rows": min(rows, MOST_ROWS)}
            )
            self._timer = threading.Timer(self._idle, self._end_idle)
            self._timer.daemon = True
            self._timer.start()
        finally:
            self._lock.release()
        if "error" in found:
            if found.get("line") is not None:
                raise SqlSyntaxError(found["error"], found["line"], found["column"])
            raise ControlError(found["error"])
        return found

    def close(self) -> None:
        """End the process."""
        if self._timer is not None:
            self._timer.cancel()
        self._end()

    def _ask(self, given: Values) -> Values:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(given) + "\n")
            process.stdin.flush()
            line = self._line(process, given["seconds"] + _START_SECONDS)
        except (OSError, ValueError):
            line = None
        if not line:
            self._end()
            raise ControlError("the preview did not answer and was stopped")
        found: Values = json.loads(line)
        return found

    @staticmethod
    def _line(process: subprocess.Popen[str], seconds: float) -> str | None:
        assert process.stdout is not None
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([process.stdout], [], [], left)
            if ready:
                return process.stdout.readline()
        return None

    @staticmethod
    def _start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "sash.console.preview_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def _end_idle(self) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()

    def _end(self) -> None:
        """End the process, its Java process and its workers, which are in a group of their own."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, 9)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
