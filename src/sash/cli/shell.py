"""`sash sql`: executes statements and shows their replies."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import Console

from sash.cli.answer import TimeLimit, watch
from sash.cli.reply_view import ReplyView
from sash.cli.session import starting_engine, stopped_by
from sash.errors import SashError, SqlSyntaxError
from sash.plan.catalog import RelationEntry, StreamEntry
from sash.script.reader import read_script
from sash.script.replies import QueryReply, Reply
from sash.script.session import Session
from sash.script.statements import CreateQuery, Drop, Explain, SnapshotStatement

if TYPE_CHECKING:
    from sash.engine import Engine

_SLOW = {CreateQuery: "Planning", Drop: "Stopping", SnapshotStatement: "Running", Explain: "Planning"}
"""Statements that may take a while, and the status to show meanwhile."""


@dataclass
class Shell:
    """Executes statements in a session and shows their replies; the form is `live`, `plain` or `json`.

    The session is one on the given engine, which may still be starting.
    """

    engine: Future[Engine]
    console: Console
    form: str
    seconds: float | None = None

    @cached_property
    def session(self) -> Session:
        """The session; waits for the engine."""
        waiting = self.form == "live" and not self.engine.done()
        with self.console.status("Starting Spark") if waiting else nullcontext():
            return Session.on(self.engine.result())

    def names(self) -> list[str]:
        """The names to complete: streams, relations, queries, and columns; none while the engine is starting."""
        if not self.engine.done() or self.engine.exception() is not None:
            return []
        catalog = self.session.backend.catalog
        entries: list[StreamEntry | RelationEntry] = [*catalog.streams.values(), *catalog.relations.values()]
        columns = {field.name for entry in entries for field in entry.schema}
        queries = [statement.name for statement in self.session.queries.values()]
        return [*(entry.name for entry in entries), *queries, *sorted(columns)]

    def run(self, text: str) -> bool:
        """Execute the statements of a text up to the first error, which is shown; return whether there was none.

        The queries that it creates are started together, at its end or before a statement that needs them.
        """
        try:
            for statement in read_script(text):
                session = self.session
                with self._status(_SLOW.get(type(statement))):
                    reply = session.execute(statement)
                self._show(reply)
        except SashError as problem:
            self._show_problem(problem, text)
            with suppress(SashError):  # the statements before it hold
                self._launch()
            return False
        try:
            self._launch()
        except SashError as problem:
            self._show_problem(problem, text)
            return False
        return True

    def _launch(self) -> None:
        if "session" in self.__dict__:
            with self._status("Starting"):
                self.session.launch()

    def _status(self, text: str | None) -> AbstractContextManager[object]:
        return self.console.status(text) if text and self.form == "live" else nullcontext()

    def _show_problem(self, problem: SashError, text: str) -> None:
        message = problem.marked(text) if isinstance(problem, SqlSyntaxError) else str(problem)
        self.show_error(message, problem.log)

    def show_error(self, message: str, log: str | None = None) -> None:
        """Show an error; `log` is the file with the full trace, if there is one."""
        self._view.show_error(message, log)

    @property
    def _view(self) -> ReplyView:
        return ReplyView(self.console, self.form)

    def _show(self, reply: Reply) -> None:
        if isinstance(reply, QueryReply):
            self._watch(reply)
        else:
            self._view.show(reply)

    def _watch(self, reply: QueryReply) -> None:
        """Show the answer until Ctrl-C, for the given number of seconds from its first row on, or until the input ends."""
        limit = TimeLimit(self.seconds)
        with stopped_by(signal.SIGINT) as stop:
            watch(reply.query, self.console, stop, self.session.settings.trigger, form=self.form, limit=limit)
        if limit.in_vain:
            self.show_error(
                f"there was no answer within {limit.patience:.0f} seconds, so the query was stopped: check that rows arrive, "
                "and that they are in the window"
            )


@contextmanager
def open_shell(console: Console, form: str, seconds: float | None, **spark: Any) -> Iterator[Shell]:
    """A shell whose engine is being started."""
    with starting_engine(**spark) as engine:
        yield Shell(engine, console, form, seconds)


def run_script(text: str, form: str, seconds: float | None, **spark: Any) -> int:
    """Execute the statements of a text; return the exit code."""
    with open_shell(Console(), form, seconds, **spark) as shell:
        return 0 if shell.run(until_exit(text)) else 1


def until_exit(text: str) -> str:
    """The statements of a text before `exit` or `quit`.

    >>> until_exit("SHOW STREAMS; exit")
    'SHOW STREAMS;'
    """
    return re.split(r"(?im)(?:^|(?<=;))\s*(?:exit|quit)\s*(?:;|\Z)", text, maxsplit=1)[0]
