"""Fault injection: a stage processor that fails, or whose worker or driver is killed, once in a given batch."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sash.spark.header import HEADER
from sash.spark.stage import StageProcessor


def order(directory: Path, batch: int, what: str, where: str) -> None:
    """Inject `what` (fail, kill or driver) once in the batch: `within` the shard's work or at its `end`."""
    directory.mkdir(exist_ok=True)
    (directory / f"{batch}-{what}-{where}").touch()


class TroubledProcessor(StageProcessor):
    """A stage processor that injects the faults ordered in `directory`."""

    def __init__(self, directory: Path, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._directory = directory

    def run(self, label: int, rows: Any, chunks: Any) -> Iterator[Any]:
        yield from super().run(label, rows, chunks)
        self._inject("end")

    def outgoing(self, *arguments: Any) -> Iterator[Any]:
        self._inject("within")
        yield from super().outgoing(*arguments)

    def _inject(self, where: str) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        batch = context.getLocalProperty("streaming.sql.batchId") if context else None
        for what in ("fail", "kill", "driver"):
            try:
                (self._directory / f"{batch}-{what}-{where}").unlink()
            except FileNotFoundError:
                continue
            if what == "fail":
                raise RuntimeError("injected fault")
            if what == "driver":
                os.kill(int((self._directory / "pid").read_text()), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


class WatchedProcessor(StageProcessor):
    """A stage processor that takes snapshots early and writes the header of every shard and batch to `directory`."""

    def __init__(self, directory: Path, log_bytes: int, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._directory = directory
        self.log_bytes = log_bytes

    def run(self, label: int, rows: Any, chunks: Any) -> Iterator[Any]:
        from pyspark import TaskContext

        yield from super().run(label, rows, chunks)
        batch = TaskContext.get().getLocalProperty("streaming.sql.batchId")  # type: ignore[union-attr]
        (self._directory / f"{batch}-{label}").write_bytes(bytes(chunks.getValue(HEADER)[0]))  # type: ignore[index]
