"""The commands that a running job takes on its control socket: status, execute, diff, apply, pause, resume and stop.

`status` and `stop` are answered at once. The others use the session, so they wait for the thread that supervises the job.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sash.arguments import check_text
from sash.console.report import COMMANDS as REPORTS
from sash.console.report import JobReport
from sash.control import ControlServer
from sash.errors import ControlError
from sash.job_index import JobEntry, socket_path
from sash.script import statements
from sash.script.listings import list_jobs, list_queries, list_windows
from sash.script.reader import read_script
from sash.script.replies import MessageReply, Reply, TableReply
from sash.script.session import Session
from sash.script.statements import Statement
from sash.spark.folders import local_path
from sash.sql.source import did_you_mean

COMMANDS = ("status", "execute", "diff", "apply", "pause", "resume", "stop")
_CHANGES = (
    statements.CreateStream,
    statements.CreateRelation,
    statements.CreateFunction,
    statements.CreateQuery,
    statements.AlterQuery,
    statements.ResumeQuery,
    statements.Drop,
)
_REFUSED = (statements.Select, statements.SetOption, statements.Keep, statements.Attach)
"""Statements that a running job does not execute for others: they would change its settings, or need a screen."""


@dataclass(frozen=True)
class ScriptChange:
    """Compares a script with the running job, and applies it. Both return a text for people and values for programs."""

    diff: Callable[[str], dict[str, Any]]
    apply: Callable[[str], dict[str, Any]]


@dataclass
class JobControl:
    """Executes commands on the session of a job. `session` may be replaced when a script is applied."""

    session: Callable[[], Session]
    change: ScriptChange
    stop: threading.Event
    entry: JobEntry
    log: Callable[[str], None] = lambda _: None
    """Gets a line about every change."""
    report: JobReport | None = None
    """Answers the console."""
    _pending: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = field(default_factory=queue.SimpleQueue)
    _closed: bool = False

    def serve(self) -> ControlServer:
        """Serve the control socket."""
        return ControlServer(Path(self.entry.socket), self.handle)

    def handle(self, command: str, arguments: Mapping[str, Any]) -> Any:
        """Execute a command of a client, on the thread of its connection."""
        match command:
            case "status":
                return self._status()
            case "stop":
                self.stop.set()
                return {"message": "the job stops after its current batch"}
            case name if self.report is not None and name in REPORTS:
                return self.report.handle(name, arguments)
            case "pause":
                return self._submit(self._pause)
            case "resume":
                return self._submit(self._resume)
            case "execute":
                text = check_text("text", arguments.get("text"), ControlError)
                return self._submit(lambda: [reply for s in read_script(text) for reply in self._execute(s)])
            case "diff":
                text = check_text("text", arguments.get("text"), ControlError)
                return self._submit(lambda: self.change.diff(text))
            case "apply":
                text = check_text("text", arguments.get("text"), ControlError)
                return self._submit(lambda: self._apply(text))
        raise ControlError(f"there is no command {command}{did_you_mean(command, COMMANDS)}; use {', '.join(COMMANDS)}")

    def attend(self) -> None:
        """Execute the commands that wait, on the thread that supervises the job."""
        while True:
            try:
                task, answer = self._pending.get_nowait()
            except queue.Empty:
                return
            try:
                answer.set_result(task())
            except Exception as problem:  # noqa: BLE001  (the client gets it)
                answer.set_exception(problem)

    def close(self) -> None:
        """Refuse the commands that wait, and those that come."""
        self._closed = True
        while not self._pending.empty():
            self._pending.get()[1].set_exception(ControlError("the job is stopping"))

    @property
    def waiting(self) -> int:
        """The number of commands that wait."""
        return self._pending.qsize()

    def _submit(self, task: Callable[[], Any]) -> Any:
        if self._closed or self.stop.is_set():
            raise ControlError("the job is stopping")
        answer: Future[Any] = Future()
        self._pending.put((task, answer))
        return answer.result()

    def _execute(self, statement: Statement) -> list[dict[str, Any]]:
        if isinstance(statement, _REFUSED):
            name = type(statement).__name__
            raise ControlError(f"a running job does not execute {_WORDS.get(name, name)} for other processes")
        session = self.session()
        reply = session.execute(statement)
        session.launch()
        if isinstance(reply, MessageReply) and isinstance(statement, _CHANGES):
            self.log(reply.text)
        return [encode_reply(reply)]

    def _apply(self, text: str) -> dict[str, Any]:
        found = self.change.apply(text)
        self.log(f"the job was changed to another script:\n{found['text']}")
        return found

    def _pause(self) -> dict[str, Any]:
        self.session().backend.pause()
        self.log("paused")
        return {"message": "the job is paused: its queries have finished their batches"}

    def _resume(self) -> dict[str, Any]:
        self.session().backend.unpause()
        self.log("resumed")
        return {"message": "the job runs again"}

    def _status(self) -> dict[str, Any]:
        session = self.session()
        tables = {
            "jobs": encode_reply(list_jobs(session.backend)),
            "queries": encode_reply(list_queries(list(session.queries.values()), session.backend)),
            "windows": encode_reply(list_windows(list(session.windows.values()), session.backend)),
        }
        entry = self.entry
        facts = {"name": entry.name, "pid": entry.pid, "checkpoint": entry.checkpoint, "since": entry.since}
        return {**facts, "state": "paused" if session.backend.paused else "running", **tables}


_WORDS = {"Select": "SELECT", "SetOption": "SET", "Keep": "KEEP", "Attach": "ATTACH"}


def control_socket(checkpoint: str) -> Path:
    """The socket of the job that runs on a checkpoint."""
    return socket_path(checkpoint, local_path(checkpoint))


def encode_reply(reply: Reply) -> dict[str, Any]:
    """A reply as JSON holds it."""
    match reply:
        case MessageReply():
            return {"text": reply.text}
        case TableReply():
            return {"columns": list(reply.columns), "rows": [list(row) for row in reply.rows], "note": reply.note}
    raise ControlError("the answer of a SELECT can only be shown by the process that runs it")


def decode_reply(given: Mapping[str, Any]) -> MessageReply | TableReply:
    """The reply that was encoded."""
    if "text" in given:
        return MessageReply(str(given["text"]))
    return TableReply(tuple(given["columns"]), [tuple(row) for row in given["rows"]], str(given.get("note", "")))
