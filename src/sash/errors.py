"""Every error Sash raises on purpose: one class per thing a user can put right."""

from __future__ import annotations


class SashError(Exception):
    """The base of all of them; the message tells what to change."""


class SqlSyntaxError(SashError):
    """The text is not SQL as Sash reads it."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    def __str__(self) -> str:
        where = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        return self.message + where

    def move(self, line: int, column: int) -> None:
        """The text that the place is in starts here in a longer one."""
        assert self.line is not None
        assert self.column is not None
        self.column += column - 1 if self.line == 1 else 0
        self.line += line - 1

    def marked(self, text: str) -> str:
        """The message, and the line that it is about with the place marked."""
        if self.line is None or self.column is None:
            return self.message
        lines = text.splitlines() or [""]
        shown = lines[min(self.line, len(lines)) - 1]
        margin = f"  {self.line} | "
        tabs = "".join("\t" if character == "\t" else " " for character in shown[: self.column - 1])
        mark = tabs + " " * (self.column - 1 - len(tabs)) + "^"
        return f"{self.message}\n{margin}{shown}\n{' ' * (len(margin) - 2)}| {mark}"


class UnknownNameError(SqlSyntaxError):
    """A stream, relation, column or function that nobody has registered."""


class TypeMismatchError(SqlSyntaxError):
    """Types that do not fit together."""


class UnsupportedSqlError(SqlSyntaxError):
    """A construct that is SQL but that Sash does not run; the message names it."""


class WindowError(SqlSyntaxError):
    """A window of zero or negative length, or a window that is missing where one is needed."""


class UnboundedStateError(SashError):
    """A query that would have to remember its input for ever."""


class BadRowError(SashError):
    """A row that cannot be placed in time or does not fit its stream's schema."""


class EvaluationError(SashError):
    """An expression that fails on a value: overflow, division by zero, a cast that cannot be."""


class CatalogError(SashError):
    """A stream or relation registered wrongly."""


class OptionError(SashError):
    """An option has a value that does not exist, or that does not fit the other options."""


class StatisticsError(SashError):
    """Rates, window lengths or counts that no stream can have."""


class StrategyError(SashError):
    """An execution strategy that does not exist or does not apply."""


class CheckpointError(SashError):
    """A checkpoint that belongs to another query or another version."""


class QueryFailedError(SashError):
    """A query that failed while it ran, for the reason that Spark or the sink gave; the exception is its cause."""


class SinkError(SashError):
    """A store that is not there, or refuses what it is given; `passing` if another try may help."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class StoreError(SashError):
    """A window store that is not there, is written by two, or cannot answer what is asked of it."""


class OverloadedError(SashError):
    """A snapshot or periodic query that is refused because too many wait already."""


class CancelledError(SashError):
    """A snapshot or periodic query that somebody cancelled."""


class QueryTimeoutError(SashError):
    """A snapshot query that was not answered in the time it was given."""


class StarvedError(SashError):
    """A snapshot or periodic query that began again and again because the window moved on under it."""


class HistoryError(SashError):
    """A history of reads and writes that is not written as the checker reads it, or that cannot have happened."""


class IsolationError(SashError):
    """An isolation level that does not exist, or settings of a scheduler that do not fit together."""
