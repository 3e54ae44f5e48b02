"""The prompt of the shell: history, completion of keywords and names, and multi-line statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings

from sash.script.cursor import is_complete

HISTORY = Path("~/.sash_history")

_WORDS = """
ALL ANALYZE AND ANTI AS ATTACH AVG BAD BETWEEN BY CASE CHANGES COUNT CREATE CROSS DAY DESC DESCRIBE DISTINCT DROP ELSE
END EVERY EXCEPT EXISTS EXPLAIN FAIL FROM FULL GROUP HAVING HEARTBEAT HOUR IF IN INNER INTERSECT INTO IS ISOLATION
JOIN KEEP KEY LEFT LIKE LIMIT MAX MEDIAN MIN MINUS MINUTE MODE NET NON NOT NOW NULL OFFSET ON OPTIONS OR ORDER
PARTITION PATH QUERIES QUERY RANGE RATE REFRESH RELATION RELATIONS RETAIN RETROACTIVE RIGHT ROWS SECONDS SELECT SEMI
SET SHOW SLACK SLIDE SNAPSHOT STRATEGY STREAM STREAMS SUM TAU THEN TIME TRIGGER UNBOUNDED UNION UPSERT USING WHEN
WHERE WINDOW WINDOWS WITH
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
