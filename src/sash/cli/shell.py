"""`sash sql`: executes statements that are typed, piped in or given on the command line, and shows their replies."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sash.cli.answer import TimeLimit, cell, watch
from sash.cli.prompt import is_exit, prompt_session
from sash.cli.session import starting_engine, stopped_by
from sash.errors import SashError, SqlSyntaxError
from sash.plan.catalog import RelationEntry, StreamEntry
from sash.script.reader import read_script
from sash.script.session import MessageReply, QueryReply, Reply, Session, TableReply
from sash.script.statements import CreateQuery, Explain, Keep, SnapshotStatement

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from sash.engine import Engine

HELP = r"""Statements end with a semicolon and may span several lines.

  CREATE STREAM name (column TYPE, ...) USING source OPTIONS (name value, ...)
      [TIME column] [SLACK '5 seconds'] [HEARTBEAT '1 second'] [BAD ROWS DROP]
      [RATE 200] [DISTINCT (column 50, ...)]
      sources: csv, json, parquet, orc, text (path '...'), rate, socket, kafka,
      generator (rate 200, items 50): random sales; or any other Spark source
  CREATE RELATION name [(columns)] USING source OPTIONS (...) [KEY (columns)]
      [REFRESH '10 seconds' | CHANGES [TIME column] [HEARTBEAT '1 second'] [BAD ROWS DROP]]
      [NON RETROACTIVE] [ROWS 1000] [DISTINCT (column 50, ...)]
  SELECT ... FROM name [RANGE 1 MINUTE] ...    show the changing answer until Ctrl-C
  CREATE QUERY name AS SELECT ... INTO sink (name value, ...)
      [MODE changes|net|upsert] [KEY (columns)] [TRIGGER '1 second']
      [STRATEGY name] [JOIN name] [TAU '5 seconds']
      sinks: postgres (url '...', table '...'), changelog (path '...'), kafka, console, memory,
      or any other Spark sink
  KEEP stream WINDOW '60 seconds' EVERY '1 second' [PATH '...'] [RETAIN n]
                                               keep a window for snapshot queries
  ATTACH name PATH '...'                       open a window kept by another process
  SNAPSHOT SELECT ...                          answer once, from a kept window
  EXPLAIN [ALL|ANALYZE|SNAPSHOT] SELECT ...    EXPLAIN ANALYZE query
  SHOW STREAMS | RELATIONS | QUERIES | WINDOWS
  DESCRIBE name                                DROP STREAM|RELATION|QUERY|WINDOW name
  SET strategy|join|tau|trigger|isolation|spark.x = value

  \help  show this text     exit, quit  leave the shell (or press Ctrl-D)"""

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


def run_shell(command: str | None, *, form: str, seconds: float | None, **spark: Any) -> int:
    """Execute the command, or the piped input, or statements typed at a prompt; return the exit code."""
    interactive = command is None and sys.stdin.isatty()
    console = Console()
    with starting_engine(**spark) as engine:
        shell = Shell(engine, console, form, seconds)
        if interactive:
            run_prompt(shell)
            return 0
        return 0 if shell.run(until_exit(sys.stdin.read() if command is None else command)) else 1


def until_exit(text: str) -> str:
    """The statements of a text before `exit` or `quit`.

    >>> until_exit("SHOW STREAMS; exit")
    'SHOW STREAMS;'
    """
    return re.split(r"(?im)(?:^|(?<=;))\s*(?:exit|quit)\s*(?:;|\Z)", text, maxsplit=1)[0]


def run_prompt(shell: Shell) -> None:
    """Read and execute statements from the terminal until the user quits."""
    from sash.spark.errors import to_sash_error

    prompt = prompt_session(shell.names)
    shell.console.print(r"Sash: continuous SQL. Type \help for help, exit to leave.", highlight=False)
    for text in _typed(prompt):
        if is_exit(text):
            return
        if text.startswith("\\"):
            match text.rstrip(";").strip():
                case "\\help" | "\\h" | "\\?":
                    shell.console.print(HELP, markup=False, highlight=False)
                case other:
                    shell.show_error(rf"there is no command {other}; type \help for help")
        else:
            try:
                shell.run(text)
            except KeyboardInterrupt:
                shell.show_error("interrupted")
            except Exception as problem:  # noqa: BLE001  (a bug must not end the user's other queries)
                error = to_sash_error(problem)
                shell.show_error(str(error), error.log)


def _typed(prompt: PromptSession[str]) -> Iterator[str]:
    while True:
        try:
            text = prompt.prompt("sash> ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text:
            yield text
