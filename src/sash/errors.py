"""Every error Sash raises on purpose: one class per thing a user can put right."""

from __future__ import annotations


class SashError(Exception):
    """The base of all of them; the message tells what to change."""


class SqlSyntaxError(SashError):
    """The text is not SQL as Sash reads it."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        where = f" (line {line}, column {column})" if line is not None else ""
        super().__init__(message + where)
        self.line = line
        self.column = column


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


class StrategyError(SashError):
    """An execution strategy that does not exist or does not apply."""


class CheckpointError(SashError):
    """A checkpoint that belongs to another query or another version."""


class StoreError(SashError):
    """A window store that is not there, is written by two, or cannot answer what is asked of it."""


class OverloadedError(SashError):
    """A snapshot or periodic query that is refused because too many wait already."""


class CancelledError(SashError):
    """A snapshot or periodic query that somebody cancelled."""


class QueryTimeoutError(SashError):
    """A snapshot query that was not answered in the time it was given."""


class HistoryError(SashError):
    """A history of reads and writes that is not written as the checker reads it, or that cannot have happened."""


class IsolationError(SashError):
    """An isolation level that does not exist, or settings of a scheduler that do not fit together."""
