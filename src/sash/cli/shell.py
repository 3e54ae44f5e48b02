"""The shell: statements typed, piped or given on the command line, their replies shown, until the end of the input."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from sash.cli.answer import cell, watch
from sash.cli.prompt import prompt_session
from sash.cli.session import quiet_engine, stopped_by
from sash.errors import SashError, SqlSyntaxError
from sash.plan.catalog import RelationEntry, StreamEntry
from sash.script.reader import read_script
from sash.script.session import Asked, Listed, Reply, Said, Session
from sash.script.statements import CreateQuery, Explain, Keep, Snapshot, Statement

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

HELP = r"""Statements end with a semicolon and may go over several lines.

  CREATE STREAM name (column TYPE, ...) USING source OPTIONS (name value, ...)
      [TIME column] [SLACK '5 seconds'] [HEARTBEAT '1 second'] [BAD ROWS DROP]
      [RATE 200] [DISTINCT (column 50, ...)]
      sources: csv, json, parquet, orc, text (path '...'), rate, socket, kafka,
      generator (rate 200, items 50): made-up sales; or any other of Spark's
  CREATE RELATION name [(columns)] USING source OPTIONS (...) [KEY (columns)]
      [REFRESH '10 seconds' | CHANGES [TIME column] [HEARTBEAT '1 second'] [BAD ROWS DROP]]
      [NON RETROACTIVE] [ROWS 1000] [DISTINCT (column 50, ...)]
  SELECT ... FROM name [RANGE 1 MINUTE] ...    runs; the answer changes until Ctrl-C
  CREATE QUERY name AS SELECT ... INTO sink (name value, ...)
      [MODE changes|net|upsert] [KEY (columns)] [TRIGGER '1 second']
      [STRATEGY name] [JOIN name] [TAU '5 seconds']
      sinks: postgres (url '...', table '...'), changelog (path '...'), kafka, console, memory,
      or any other of Spark's
  KEEP stream WINDOW '60 seconds' EVERY '1 second' [PATH '...'] [RETAIN n]
  ATTACH name PATH '...'                       a window that another process keeps
  SNAPSHOT SELECT ...                          one answer, of a window that is kept
  EXPLAIN [ALL|ANALYZE|SNAPSHOT] SELECT ...    EXPLAIN ANALYZE query
  SHOW STREAMS | RELATIONS | QUERIES | WINDOWS
  DESCRIBE name                                DROP STREAM|RELATION|QUERY|WINDOW name
  SET strategy|join|tau|trigger|isolation|spark.x = value

  \help  this text          \quit  leave (so does Ctrl-D)"""

_SLOW = {CreateQuery: "starting", Keep: "starting", Snapshot: "asking", Explain: "explaining"}
"""Statements that may take a while, and what is said meanwhile."""


@dataclass
class Shell:
    """Executes texts in a session and shows what comes of it; form: `live`, `plain` or `json`."""

    session: Session
    console: Console
    form: str
    seconds: float | None = None

    def run(self, text: str) -> bool:
        """Execute the statements of a text; False, with the reason shown, if one could not be."""
        try:
            for statement in read_script(text):
                self._execute(statement)
        except SqlSyntaxError as problem:
            self.complain(problem.marked(text))
        except SashError as problem:
            self.complain(str(problem))
        else:
            return True
        return False

    def complain(self, message: str) -> None:
        """Show what is wrong."""
        if self.form == "json":
            self.console.out(json.dumps({"error": message}), highlight=False)
        else:
            Console(stderr=True).print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)

    def _execute(self, statement: Statement) -> None:
        slow = _SLOW.get(type(statement))
        with self.console.status(slow) if slow and self.form == "live" else nullcontext():
            reply = self.session.execute(statement)
        self._show(reply)

    def _show(self, reply: Reply) -> None:
        match reply:
            case Asked():
                self._watch(reply)
            case Said() if self.form == "json":
                self.console.out(json.dumps({"said": reply.text}), highlight=False)
            case Said():
                self.console.print(reply.text, markup=False, highlight=False, soft_wrap=True)
            case Listed() if self.form == "json":
                for row in reply.rows:
                    named = dict(zip(reply.columns, row, strict=True))
                    self.console.out(json.dumps(named, default=str), highlight=False)
            case Listed():
                self.console.print(table_of(reply))
                if reply.note:
                    self.console.print(reply.note, style="dim", markup=False, highlight=False)

    def _watch(self, reply: Asked) -> None:
        """Show the answer until Ctrl-C, until the time that was given is over, or until the input ends."""
        with stopped_by(signal.SIGINT) as stop:
            timer = threading.Timer(self.seconds, stop.set) if self.seconds else None
            if timer is not None:
                timer.daemon = True
                timer.start()
            watch(reply.query, self.console, stop, self.session.settings.trigger, form=self.form)
            if timer is not None:
                timer.cancel()


def table_of(listed: Listed) -> Table:
    """Rows as a table."""
    table = Table(*listed.columns)
    for row in listed.rows:
        table.add_row(*map(cell, row))
    return table


def run_shell(command: str | None, *, form: str, seconds: float | None, **spark: Any) -> int:
    """Run the command, or what is piped in, or talk; the exit code."""
    talking = command is None and sys.stdin.isatty()
    console = Console()
    with ExitStack() as stack:
        with console.status("starting Spark") if talking else nullcontext():
            engine = stack.enter_context(quiet_engine(**spark))
        shell = Shell(Session.on(engine), console, form, seconds)
        if talking:
            talk(shell)
            return 0
        return 0 if shell.run(sys.stdin.read() if command is None else command) else 1


def talk(shell: Shell) -> None:
    """Read statements from the terminal until it is told to quit, or Ctrl-D."""
    prompt = prompt_session(lambda: names_of(shell.session))
    shell.console.print(r"Sash: continuous SQL. \help tells what to type, \quit leaves.", highlight=False)
    for text in _typed(prompt):
        if text.startswith("\\"):
            match text.rstrip(";").strip():
                case "\\quit" | "\\q":
                    return
                case "\\help" | "\\h" | "\\?":
                    shell.console.print(HELP, markup=False, highlight=False)
                case other:
                    shell.complain(rf"there is no {other}; \help tells what there is")
        else:
            try:
                shell.run(text)
            except KeyboardInterrupt:
                shell.complain("interrupted")
            except Exception as problem:  # noqa: BLE001  (a mistake of ours must not end the user's other queries)
                shell.complain(f"{type(problem).__name__}: {problem}")


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


def names_of(session: Session) -> list[str]:
    """Streams, relations, queries, and the columns of all of them."""
    catalog = session.ground.catalog
    entries: list[StreamEntry | RelationEntry] = [*catalog.streams.values(), *catalog.relations.values()]
    columns = {field.name for entry in entries for field in entry.schema}
    queries = [statement.name for statement, _ in session.queries.values()]
    return [*(entry.name for entry in entries), *queries, *sorted(columns)]
