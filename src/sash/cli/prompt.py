"""The prompt of the shell: history, completion of keywords and names, and multi-line statements.

It is shown before most of Sash is imported: a thread loads the shell, which starts Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings
from rich.console import Console

if TYPE_CHECKING:
    from sash.cli.remote import AttachedShell
    from sash.cli.shell import Shell

HELP = r"""Statements end with a semicolon and may span several lines.

  CREATE STREAM name (column TYPE, ...) USING source OPTIONS (name value, ...)
      [TIME column] [SLACK '5 seconds'] [HEARTBEAT '1 second'] [BAD ROWS DROP]
      [BAD|LATE ROWS INTO 'path'] [MAX BAD ROWS 1 PERCENT] [MAX JUMP '1 day']
      [MAX ROWS PER BATCH 100000]
      [PARTITION BY (column)] [IDLE AFTER '1 minute'] [RATE 200] [PEAK 900] [DISTINCT (column 50, ...)]
      sources: csv, json, parquet, orc, text (path '...'), rate, socket, kafka,
      generator (rate 200, items 50): random sales; or any other Spark source
  CREATE RELATION name [(columns)] USING source OPTIONS (...) [KEY (columns)]
      [REFRESH '10 seconds' | CHANGES [TIME column] [HEARTBEAT '1 second'] [BAD ROWS DROP]]
      [NON RETROACTIVE] [ROWS 1000] [DISTINCT (column 50, ...)]
  SELECT ... FROM name [RANGE 1 MINUTE] ...    show the changing answer until Ctrl-C
  CREATE QUERY name AS SELECT ... INTO sink (name value, ...)
      [MODE changes|net|upsert] [KEY (columns)] [TRIGGER '1 second']
      [STRATEGY name] [JOIN name] [REORDER OFF] [TAU '5 seconds'] [PROBE '1 second'] [PATIENCE '1 second'] [SEPARATE]
      [ON ERROR SUSPEND|FAIL] [MAX STATE '1 GB'] [OUTBOX '64 MB'] [WHEN COMPLETE] [BACKFILL]
      sinks: postgres (url '...', table '...'), changelog (path '...'), kafka, delta, iceberg, table, console, memory,
      or any other Spark sink
  ALTER QUERY name AS SELECT ... [INTO ...]    ALTER QUERY name SET MODE net ...
  RESUME QUERY name                            let a parked query run again
  KEEP stream WINDOW '60 seconds' EVERY '1 second' [PATH '...'] [RETAIN n]
                                               keep a window for snapshot queries
  ATTACH name PATH '...'                       open a window kept by another process
  SNAPSHOT SELECT ...                          answer once, from a kept window
  EXPLAIN [ALL|ANALYZE|SNAPSHOT] SELECT ...    EXPLAIN ANALYZE query    EXPLAIN JOB
  SHOW STREAMS | RELATIONS | QUERIES | WINDOWS | JOBS
  DESCRIBE name                                DROP STREAM|RELATION|QUERY|WINDOW name
  SET strategy|join|tau|trigger|isolation|spark.x = value

  \help  show this text     exit, quit  leave the shell (or press Ctrl-D)"""

HISTORY = Path("~/.sash_history")

_WORDS = """
ALL ALTER ANALYZE AND ANTI AS ATTACH AVG BACKFILL BAD BETWEEN BY CASE CHANGES COMPLETE COUNT CREATE CROSS DAY DESC
DESCRIBE DISTINCT DROP ELSE END ERROR EVERY EXCEPT EXISTS EXPLAIN FAIL FROM FULL GROUP HAVING HEARTBEAT HOUR IDLE IF IN
INNER INTERSECT INTO IS ISOLATION JOB JOBS JOIN KEEP KEY LATE LEFT LIKE LIMIT MAX MEDIAN MIN MINUS MINUTE MODE NET NON NOT
NOW NULL OFFSET ON OPTIONS OR ORDER OUTBOX PARTITION PATH PERCENT QUERIES QUERY RANGE RATE REFRESH RELATION RELATIONS RESUME
RETAIN RETROACTIVE RIGHT ROWS SECONDS SELECT SEMI SEPARATE SET SHOW SLACK SLIDE SNAPSHOT STATE STRATEGY STREAM STREAMS
SUM SUSPEND TAU THEN TIME TRIGGER UNBOUNDED UNION UPSERT USING WHEN WHERE WINDOW WINDOWS WITH
"""
KEYWORDS = _WORDS.split()


class NameCompleter(Completer):
    """Completes the word before the cursor to a known name, or to a keyword in the case in which it was begun."""

    def __init__(self, names: Callable[[], list[str]]) -> None:
        self._names = names

    def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
        """The names and keywords that start with the word."""
        word = document.get_word_before_cursor(WORD=False)
        if not word.strip():
            return
        for candidate in dict.fromkeys([*self._names(), *KEYWORDS]):
            if candidate.lower().startswith(word.lower()) and candidate.lower() != word.lower():
                shown = candidate.lower() if candidate in KEYWORDS and word.islower() else candidate
                yield Completion(shown, start_position=-len(word))


def is_finished(text: str) -> bool:
    """Whether Enter submits the text: a whole statement, a command of the shell, or an empty line."""
    from sash.script.cursor import is_complete

    return not text.strip() or text.lstrip().startswith("\\") or is_exit(text) or is_complete(text)


def is_exit(text: str) -> bool:
    """Whether the text leaves the shell.

    >>> is_exit("EXIT"), is_exit("quit;"), is_exit("exits")
    (True, True, False)
    """
    return text.strip().rstrip("; ").lower() in ("exit", "quit", "\\quit", "\\q")


def prompt_session(names: Callable[[], list[str]], **terminal: Any) -> PromptSession[str]:
    """A prompt that completes the given names and the keywords."""
    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: is_finished(prompt.default_buffer.text)))
    def accept(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(HISTORY.expanduser())),
        completer=NameCompleter(names),
        complete_while_typing=False,
        multiline=True,
        key_bindings=keys,
        prompt_continuation="   -> ",
        **terminal,
    )
    return prompt


def run_prompt(attach: str | None = None, **options: Any) -> None:
    """Read statements from the terminal, and execute them in a shell with the options, until the user quits.

    With `attach`, the job that runs on that checkpoint executes them.
    """
    console = Console()
    with ExitStack() as stack, ThreadPoolExecutor(1, "sash-shell") as pool:

        def load() -> Shell | AttachedShell:
            if attach is not None:
                from sash.cli.remote import AttachedShell

                return AttachedShell(attach, console, options["form"])
            from sash.cli.shell import open_shell

            return stack.enter_context(open_shell(console, **options))

        shell = pool.submit(load)
        prompt = prompt_session(lambda: shell.result().names() if shell.done() and not shell.exception() else [])
        console.print(r"Sash: continuous SQL. Type \help for help, exit to leave.", highlight=False)
        for text in _typed(prompt):
            if is_exit(text):
                return
            if text.rstrip("; ") in ("\\help", "\\h", "\\?"):
                console.print(HELP, markup=False, highlight=False)
            else:
                _execute(shell.result(), text)


def _execute(shell: Shell | AttachedShell, text: str) -> None:
    from sash.spark.errors import to_sash_error

    if text.startswith("\\"):
        shell.show_error(rf"there is no command {text}; type \help for help")
        return
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
