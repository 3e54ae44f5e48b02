"""Errors that Sash raises on purpose; each message tells the user what to change."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from sash.masking import mask

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_LONGEST_LINE = 160
_LONGEST_MESSAGE = 1_500
_LONG_WORD = re.compile(r"\S{101,}")


def excerpt(text: str, place: int = 0, most: int = 60) -> str:
    """The text in one piece if it is short, otherwise what is around a place of it, with an ellipsis for the rest.

    >>> excerpt("0123456789", 5, 4)
    '…3456…'
    """
    start = _start(text, place, most)
    return ("…" if start else "") + text[start : start + most] + ("…" if start + most < len(text) else "")


def _start(text: str, place: int, most: int) -> int:
    return max(0, min(place - most // 2, len(text) - most))


class SashError(Exception):
    """Base class of all errors of Sash.

    `log` is the file with the full trace, if the error came out of Spark. `part` names the clause of a statement that the
    error is about, such as `sink` or `trigger`, and `query` the query, where they are known. `row` has the values of the row
    that caused it, and the file. Secret values are masked.
    """

    log: str | None = None
    part: str | None = None
    query: str | None = None
    row: str | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*(mask(given) if isinstance(given, str) else given for given in args))

    def logged_in(self, path: str) -> None:
        """Refer to the file with the full trace, also in Python's own display of the error."""
        self.log = path
        self.add_note(f"The full trace is in {path}")


class SqlSyntaxError(SashError):
    """The text is not valid in Sash's SQL dialect."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        message = excerpt(_LONG_WORD.sub(lambda word: excerpt(word[0]), mask(message)), most=_LONGEST_MESSAGE)
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        return self.message + where

    def move(self, line: int, column: int) -> None:
        """Turn a position in a query into one in the script whose given line and column the query starts at."""
        assert self.line is not None
        assert self.column is not None
        self.column += column - 1 if self.line == 1 else 0
        self.line += line - 1

    def marked(self, text: str) -> str:
        """Return the message and the line of `text` that it is about, with a mark under the position."""
        if self.line is None or self.column is None:
            return self.message
        lines = text.splitlines() or [""]
        whole = lines[min(self.line, len(lines)) - 1]
        shown = excerpt(whole, self.column - 1, _LONGEST_LINE)
        hidden = _start(whole, self.column - 1, _LONGEST_LINE)
        before = self.column - 1 - hidden + (hidden > 0)
        margin = f"  {self.line} | "
        tabs = "".join("\t" if character == "\t" else " " for character in shown[:before])
        mark = tabs + " " * (before - len(tabs)) + "^"
        return f"{self.message}\n{margin}{shown}\n{' ' * (len(margin) - 2)}| {mark}"


class UnknownNameError(SqlSyntaxError):
    """The query names a stream, relation, column or function that is not registered."""


class TypeMismatchError(SqlSyntaxError):
    """The types of an expression do not fit together."""


class UnsupportedSqlError(SqlSyntaxError):
    """The query uses a construct of SQL that Sash does not run; the message names it."""


class WindowError(SqlSyntaxError):
    """A window is missing where one is needed, or its length is zero or negative."""


class UnboundedStateError(SashError):
    """The query would have to keep its whole input in state."""


class BadRowError(SashError):
    """A row has no time, or does not fit the schema of its stream."""


class EvaluationError(SashError):
    """An expression fails on a value: overflow, division by zero, or an impossible cast."""


class CatalogError(SashError):
    """A stream, relation, query or table does not exist, exists already, or has the wrong columns."""


class OptionError(SashError):
    """An option has a value that does not exist, or that does not fit the other options."""


class StrategyError(OptionError):
    """An option of a query's execution does not exist, or does not apply to the query."""


class IsolationError(OptionError):
    """An isolation level does not exist, or the settings of a scheduler do not fit together."""


class StatisticsError(SashError):
    """A declared rate, window length or number of rows or values is impossible."""


class CheckpointError(SashError):
    """The checkpoint belongs to another query, or to another version of Sash."""


class JobChangedError(CheckpointError):
    """The checkpoint belongs to a job with other queries, options, streams or shards."""


class ControlError(SashError):
    """A running job cannot be reached, or refuses a command."""


class NotKeptError(SashError):
    """The history of a job does not have what was asked for."""


class JavaError(SashError):
    """Spark cannot be started: Java is missing or too old, or the cluster cannot be reached."""


class QueryFailedError(SashError):
    """A running query failed for a reason given by Spark or the sink; `log` has the full trace."""


class StageError(SashError):
    """A part of a job failed, on which only some of its queries depend."""

    @staticmethod
    def of(queries: Iterable[str], text: str) -> StageError:
        """The error of these queries."""
        return StageError(f"queries {json.dumps(sorted(queries))} failed: {text}")

    @property
    def queries(self) -> list[str]:
        """The names of the queries."""
        names, _ = json.JSONDecoder().raw_decode(str(self).partition("queries ")[2])
        return [str(name) for name in names]


class SinkError(SashError):
    """A sink cannot be reached, or rejects the data; `transient` if a retry may succeed."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class SourceError(SashError):
    """A system that is read cannot be reached, or refuses; `transient` if a retry may succeed."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class StoreError(SashError):
    """A window store does not exist, has another writer, or cannot answer the query."""


class OverloadedError(SashError):
    """A snapshot or periodic query is rejected because too many others are waiting."""


class CancelledError(SashError):
    """A snapshot or periodic query was cancelled."""


class QueryTimeoutError(SashError):
    """A snapshot query was not answered within its timeout."""


class StarvedError(SashError):
    """A snapshot or periodic query was restarted too often because its window kept changing."""


class HistoryError(SashError):
    """A history of reads and writes is not in the checker's notation, or is impossible."""
