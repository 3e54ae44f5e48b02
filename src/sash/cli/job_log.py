"""The log of a job on standard output and in a file: a line per event, and per batch or from time to time one about batches."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from sash.errors import SashError
from sash.masking import mask
from sash.private_folders import make_private

_INTERVAL = 10.0
"""Seconds between two lines of text about the batches of a query."""

_MOST_BYTES, _BACKUPS = 8 * 2**20, 2
"""The size of the file of a log, and the number of older files."""


class JobName(str):
    """The name of a job, in a log in which most names are those of queries."""

    __slots__ = ()


@dataclass
class JobLog:
    """The log of a job on standard output, one line per event: text, or JSON for programs."""

    as_json: bool
    error: str | None = None
    """The error that ended the job."""
    row: str | None = None
    """The row that caused it."""
    _file: RotatingFileHandler | None = None
    _printed: dict[str, float] = field(default_factory=dict)
    _pending: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self, event: str, query: str | None = None, level: str = "info", **details: Any) -> None:
        """Write one line, about a query if one is named; a `JobName` instead names a job as a whole."""
        now = datetime.now(UTC)
        if self.as_json:
            named = {} if query is None else {"job" if isinstance(query, JobName) else "query": query}
            entry = {"time": now.isoformat(timespec="milliseconds"), "level": level, "event": event, **named, **details}
            self._print(json.dumps(entry, default=str))
        else:
            words = " ".join(f"{name}={value}" for name, value in details.items() if value not in (None, ""))
            prefix = "" if query is None else f"{query}: "
            self._print(f"{now:%Y-%m-%dT%H:%M:%SZ} {prefix}{event}{' ' + words if words else ''}")

    def write_warning(self, text: str, query: str | None = None) -> None:
        """Write a warning."""
        if self.as_json:
            self.write("warning", query, level="warning", message=text)
        else:
            self.write(f"warning: {text}", query)

    def write_error(self, text: str) -> None:
        """Write an error with its position in the script, as it stands, to standard error; it ends the job."""
        print(text, file=sys.stderr)
        self._keep(text)

    def fail(self, event: str, error: SashError, query: str) -> None:
        """Write why a query ended, and where the full trace is; it ends the job."""
        from sash.operators.scalar.failing_row import split_row

        text, row = split_row(str(error))
        self.error, self.row = f"query {query}: {text}", error.row or row
        if self.as_json:
            self.write(event, query, level="error", reason=str(error), log=error.log)
        else:
            self.write(f"{event}: {error}", query)
            self.write(f"the full trace is in {error.log}", query)

    @contextmanager
    def kept_in(self, path: Path) -> Iterator[None]:
        """Write every line to this file too, which only the user may read; older lines are moved to files beside it."""
        make_private(path.parent)
        path.touch(mode=0o600)
        self._file = RotatingFileHandler(path, maxBytes=_MOST_BYTES, backupCount=_BACKUPS, encoding="utf-8")
        try:
            yield
        finally:
            self._file.close()
            self._file = None

    def _print(self, line: str) -> None:
        line = mask(line)
        print(line, flush=True)
        self._keep(line)

    def _keep(self, line: str) -> None:
        if self._file is not None:
            self._file.emit(logging.makeLogRecord({"msg": line}))

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Write Sash's warnings, such as those of sinks that are retried, to this log."""
        handler = _WarningHandler(self)
        logger = logging.getLogger("sash")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)

    def add_batch(self, query: str, progress: dict[str, Any]) -> None:
        """Log a batch: at once in JSON; as text, `write_batch` logs the latest one from time to time."""
        if self.as_json:
            self.write("batch", query, **progress)
        else:
            self._pending[query] = progress

    def write_batch(self, query: str, *, at_once: bool = False) -> None:
        """Log the latest batch of the query as text, unless one was logged within the interval."""
        now = time.monotonic()
        if query in self._pending and (at_once or now - self._printed.get(query, -_INTERVAL) >= _INTERVAL):
            self._printed[query] = now
            progress = self._pending.pop(query)
            parts = ("batch", "batch_ms", "total_rows_in", "total_rows_out", "total_late", "total_bad", "state_rows")
            shown: dict[str, Any] = {part: progress.get(part) for part in parts}
            self.write("batch done", query, **shown)


class _WarningHandler(logging.Handler):
    """Passes warnings of Python's logging on to the log of a job."""

    def __init__(self, log: JobLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if not hasattr(record, "parked"):  # the supervisor logs the states of queries
            self._log.write_warning(record.getMessage())
