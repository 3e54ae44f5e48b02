"""What a session replies to a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sash.query import Query


@dataclass(frozen=True)
class MessageReply:
    """Text to show."""

    text: str


@dataclass(frozen=True)
class TableReply:
    """Rows to show as a table, and a line to show below it."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    note: str = ""


@dataclass(frozen=True)
class QueryReply:
    """The query of a SELECT, not started yet: the caller decides where to show its answer, and how long."""

    query: Query


Reply = MessageReply | TableReply | QueryReply
