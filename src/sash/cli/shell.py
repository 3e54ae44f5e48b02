"""`sash sql`: executes statements and shows their replies."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sash.cli.answer import TimeLimit, cell, watch
from sash.cli.session import starting_engine, stopped_by
from sash.errors import SashError, SqlSyntaxError
from sash.plan.catalog import RelationEntry, StreamEntry
from sash.script.reader import read_script
from sash.script.session import MessageReply, QueryReply, Reply, Session, TableReply
from sash.script.statements import CreateQuery, Explain, Keep, SnapshotStatement

if TYPE_CHECKING:
    from sash.engine import Engine

_SLOW = {CreateQuery: "Starting", Keep: "Starting", SnapshotStatement: "Running", Explain: "Planning"}
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
        queries = [statement.name for statement, _ in self.session.queries.values()]
        return [*(entry.name for entry in entries), *queries, *sorted(columns)]

    def run(self, text: str) -> bool:
        """Execute the statements of a text up to the first error, which is shown; return whether there was none."""
        try:
            for statement in read_script(text):
                session = self.session
                slow = _SLOW.get(type(statement))
                with self.console.status(slow) if slow and self.form == "live" else nullcontext():
                    reply = session.execute(statement)
                self._show(reply)
        except SqlSyntaxError as problem:
            self.show_error(problem.marked(text), problem.log)
        except SashError as problem:
            self.show_error(str(problem), problem.log)
        else:
            return True
        return False

    def show_error(self, message: str, log: str | None = None) -> None:
        """Show an error: on standard error, or as JSON; `log` is the file with the full trace, if there is one."""
        if self.form == "json":
            shown = {"error": message} if log is None else {"error": message, "log": log}
            self.console.out(json.dumps(shown), highlight=False)
        else:
            message += "" if log is None else f"\nThe full trace is in {log}"
            Console(stderr=True).print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)

    def _show(self, reply: Reply) -> None:
        match reply:
            case QueryReply():
                self._watch(reply)
            case MessageReply() if self.form == "json":
                self.console.out(json.dumps({"message": reply.text}), highlight=False)
            case MessageReply():
                self.console.print(reply.text, markup=False, highlight=False, soft_wrap=True)
            case TableReply() if self.form == "json":
                for row in reply.rows:
                    named = dict(zip(reply.columns, row, strict=True))
                    self.console.out(json.dumps(named, default=str), highlight=False)
            case TableReply():
                table = Table(*reply.columns)
                for row in reply.rows:
                    table.add_row(*map(cell, row))
                self.console.print(table)
                if reply.note:
                    self.console.print(reply.note, style="dim", markup=False, highlight=False)

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
