"""Trouble made to order: a round of stages that fails, or whose process or driver is killed, in a given batch, once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sash.spark.stage import HEADER, Round

DIRECTORY = "SASH_TEST_TROUBLE"


def order(directory: Path, batch: int, what: str, where: str) -> None:
    """Have `what` (fail, kill or driver) happen once in the batch: `within` the shard's work or at its `end`."""
    directory.mkdir(exist_ok=True)
    (directory / f"{batch}-{what}-{where}").touch()


class TroubledRound(Round):
    """A round that looks for orders in `directory`."""

    def __init__(self, directory: Path, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._directory = directory

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        yield from super().handleInputRows(key, rows, timerValues)
        self._meet("end")

    def outgoing(self, *arguments: Any) -> Iterator[Any]:
        self._meet("within")
        yield from super().outgoing(*arguments)

    def _meet(self, where: str) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        batch = context.getLocalProperty("streaming.sql.batchId") if context else None
        for what in ("fail", "kill", "driver"):
            try:
                (self._directory / f"{batch}-{what}-{where}").unlink()
            except FileNotFoundError:
                continue
            if what == "fail":
                raise RuntimeError("trouble as ordered")
            if what == "driver":
                os.kill(int((self._directory / "pid").read_text()), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


class WatchedRound(Round):
    """A round that takes snapshots early, and leaves the header of every shard and batch in `directory`."""

    def __init__(self, directory: Path, log_bytes: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._directory = directory
        self.log_bytes = log_bytes

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        from pyspark import TaskContext

        yield from super().handleInputRows(key, rows, timerValues)
        batch = TaskContext.get().getLocalProperty("streaming.sql.batchId")  # type: ignore[union-attr]
        (self._directory / f"{batch}-{key[0]}").write_bytes(bytes(self._chunks.getValue(HEADER)[0]))  # type: ignore[index]
