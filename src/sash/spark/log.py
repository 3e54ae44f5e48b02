"""The log of this process's Spark: what Java writes to its standard error, and the full trace of every failure.

It is a file in the directory for temporary files (or the one that SASH_LOG names), so that neither Java's messages nor
tracebacks fill the screen. It is removed when the process ends without a failure.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from sash.masking import mask


class SparkLog:
    """The log file of this process. Made by `spark_log`."""

    def __init__(self) -> None:
        given = os.environ.get("SASH_LOG")
        self.path = Path(given).resolve() if given else Path(tempfile.mkdtemp(prefix="sash-log-")) / "spark.log"
        self._kept = given is not None
        self._process = os.getpid()
        self._guard = threading.Lock()
        atexit.register(self._remove)

    def open(self) -> int:
        """Open the file for another process, such as Java; return the file descriptor."""
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def read(self) -> str:
        """The end of the log."""
        with suppress(OSError):
            return self.path.read_text(encoding="utf-8", errors="replace")[-20_000:]
        return ""

    def record(self, problem: BaseException) -> str:
        """Append the full trace of a failure, keep the log, and return its path."""
        self._kept = True
        lines = traceback.format_exception(problem)
        trace: BaseException | None = problem
        while trace is not None:
            with suppress(Exception):  # the text of a Java error is in the JVM, which may have ended
                lines.append(str(getattr(trace, "_stackTrace", "") or ""))
            trace = trace.__cause__
        with self._guard, suppress(OSError), os.fdopen(self.open(), "a", encoding="utf-8") as file:
            file.write(f"\n{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: failure\n{mask(''.join(lines))}\n")
        return str(self.path)

    def _remove(self) -> None:
        if not self._kept and os.getpid() == self._process:
            shutil.rmtree(self.path.parent, ignore_errors=True)


@cache
def spark_log() -> SparkLog:
    """The log of this process."""
    return SparkLog()


def redirect_messages() -> None:
    """Write to the log what PySpark and Py4J print although it is raised as well: errors of expressions, a JVM that has ended."""
    from pyspark import SparkContext
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        contexts = PySparkLogger.getLogger(name)
        contexts.handlers.clear()
        contexts.addHandler(logging.NullHandler())
    root = logging.getLogger()
    if not any(isinstance(known, _MoveToLog) for known in root.filters):
        root.addFilter(_MoveToLog())
    logging.getLogger("py4j").propagate = False
    context = SparkContext._active_spark_context  # noqa: SLF001  (PySpark has no other access to this server)
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None  # it prints that the JVM has closed its connection


class _MoveToLog(logging.Filter):
    """Moves to the log the tracebacks that Py4J writes to the root logger for every call of a JVM that has ended."""

    def filter(self, record: logging.LogRecord) -> bool:
        if Path(record.pathname).parent.name != "py4j":
            return True
        if record.exc_info is not None and record.exc_info[1] is not None:
            spark_log().record(record.exc_info[1])
        return False
