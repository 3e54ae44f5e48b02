"""Where faults strike: places in a job's processes at which an order that the campaign has left is carried out, once.

Nothing of Sash knows of this. A driver of the campaign (`driver.py`) puts a subclass of the stage processor into its job, and
wraps the function that writes a batch, the transaction of PostgreSQL's sink and the one that commits a batch.

An order is a file, which the first that comes to its place takes. Who has taken it writes down where it was, and then does
what the order says: it kills or stops a process, raises an error, or waits until the campaign has done its part.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import psutil

from sash.spark import dataflow
from sash.spark.job_batch import BatchFunction
from sash.spark.sinks.postgres import _Table
from sash.spark.stage import StageProcessor

Moment = Literal["stage", "state", "transaction", "sink"]
"""Within a stage, in a task; after the state was written and before the sinks; in a transaction of PostgreSQL; after all sinks
have committed and before Spark commits the batch."""

_WAIT = 60.0


class Orders:
    """The folder in which the campaign leaves an order, and finds out where it struck."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    # The campaign's side.

    def give(self, moment: Moment, action: str, skip: int = 0, pause: float = 0.0) -> None:
        """Have an action done at a moment, after it has been passed `skip` times."""
        for name in ("struck.json", "go", "order.json"):
            (self._folder / name).unlink(missing_ok=True)
        draft = self._folder / "order.draft"
        draft.write_text(json.dumps({"moment": moment, "action": action, "skip": skip, "pause": pause}))
        draft.rename(self._folder / "order.json")

    def withdraw(self) -> None:
        """Take an order back that nobody has taken."""
        (self._folder / "order.json").unlink(missing_ok=True)

    @property
    def struck(self) -> dict[str, Any] | None:
        """What was written down when the order was taken."""
        try:
            found: dict[str, Any] = json.loads((self._folder / "struck.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return found

    def go(self) -> None:
        """Let a process that waits go on."""
        (self._folder / "go").touch()

    # The job's side.

    def pass_by(self, moment: Moment) -> None:
        """Do what is ordered for this moment, if anything is."""
        path = self._folder / "order.json"
        try:
            order = json.loads(path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return
        if order["moment"] != moment:
            return
        taken = self._folder / f"taken-{os.getpid()}"
        try:
            path.rename(taken)
        except FileNotFoundError:
            return
        if order["skip"] > 0:
            taken.write_text(json.dumps(order | {"skip": order["skip"] - 1}))
            taken.rename(path)
            return
        self._carry_out(moment, order["action"], order["pause"])

    def _carry_out(self, moment: Moment, action: str, pause: float) -> None:
        driver = int((self._folder / "driver").read_text())
        verb, _, whom = action.partition(" ")
        pid = _process(whom, driver) if verb in ("kill", "stop") else os.getpid()
        draft = self._folder / f"struck-{os.getpid()}"
        draft.write_text(json.dumps({"moment": moment, "action": action, "pid": pid, "pause": pause}))
        draft.rename(self._folder / "struck.json")
        match verb:
            case "kill":
                os.kill(pid, signal.SIGKILL)
            case "stop":
                os.kill(pid, signal.SIGSTOP)
            case "fail":
                raise RuntimeError("a fault of the campaign")
            case "sleep":
                time.sleep(pause)
            case _:
                self._wait()

    def _wait(self) -> None:
        """Wait until the campaign has done its part, such as filling the disk."""
        until = time.monotonic() + _WAIT
        while not (self._folder / "go").exists():
            if time.monotonic() > until:
                raise RuntimeError("the campaign has not done its part")
            time.sleep(0.005)


def _process(whom: str, driver: int) -> int:
    """The process that an action means: the driver, its JVM, a Python worker, or the executor whose worker this is."""
    match whom:
        case "driver":
            return driver
        case "worker" if os.getpid() != driver:
            return os.getpid()
        case "executor":
            return _java_above(psutil.Process())
        case "jvm":
            return next(one.pid for one in psutil.Process(driver).children() if one.name() == "java")
    workers = [one for one in psutil.Process(driver).children(recursive=True) if _is_worker(one)]
    return workers[-1].pid


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.name() != "java" and process.parent() is not None and not process.children()
    except psutil.Error:
        return False


def _java_above(process: psutil.Process) -> int:
    for parent in process.parents():
        if parent.name() == "java":
            return parent.pid
    raise RuntimeError("no JVM above this worker")


class StruckProcessor(StageProcessor):
    """A stage processor that passes by the orders; snapshots of arrays are taken early, so that there are some."""

    def __init__(self, folder: Path, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._orders = Orders(folder)
        self.log_bytes = 20_000

    def run(self, label: int, rows: Any, chunks: Any) -> Iterator[Any]:
        yield from super().run(label, rows, chunks)
        self._orders.pass_by("stage")

    def outgoing(self, *arguments: Any) -> Iterator[Any]:
        self._orders.pass_by("stage")
        yield from super().outgoing(*arguments)
        self._orders.pass_by("stage")


def install(folder: Path) -> None:
    """Put the places into this driver's job."""
    orders = Orders(folder)
    write, apply = BatchFunction._write, _Table.apply  # noqa: SLF001  (the places are inside of Sash)

    def written(self: BatchFunction, *arguments: Any) -> None:
        orders.pass_by("state")
        write(self, *arguments)
        orders.pass_by("sink")

    def applied(self: _Table, *arguments: Any) -> None:
        apply(self, *arguments)
        orders.pass_by("transaction")

    processor: Callable[..., StageProcessor] = lambda *given, **named: StruckProcessor(folder, *given, **named)  # noqa: E731
    for where, name, new in (
        (dataflow, "StageProcessor", processor),
        (BatchFunction, "_write", written),
        (_Table, "apply", applied),
    ):
        patch.object(where, name, new).start()
