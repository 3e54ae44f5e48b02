"""Parses the operations of a history, in the notation that `history.py` describes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sash.errors import HistoryError

OPERATION = re.compile(r"([rwcauip])(Q\w*|\d+)(?:\[(\d+)(?::(\d+))?\])?")


@dataclass(frozen=True)
class HistoryOperation:
    """One operation of a history. `transaction` is the number of an update or the name of a query."""

    kind: str
    transaction: int | str
    sub_window: int | None = None
    as_of: int | None = None


def parse_history(history: str) -> list[HistoryOperation]:
    """The operations of a history, in order."""
    return [_operation(word) for word in history.split()]


def _operation(word: str) -> HistoryOperation:
    found = OPERATION.fullmatch(word)
    if found is None:
        raise HistoryError(f"{word!r} is not an operation: write rQ1[0], w5[0], c5, cQ1 or aQ1")
    kind, name, sub_window, as_of = found.groups()
    if (sub_window is not None) != (kind in "rwuip"):
        raise HistoryError(f"{word!r}: reads and writes name a sub-window, commits and aborts do not")
    if name.isdigit() != (kind in "wi") and kind != "c":
        raise HistoryError(f"{word!r}: queries (Q1) read and abort, updates (5) write")
    if as_of is not None and kind not in "rp":
        raise HistoryError(f"{word!r}: only a read can be as of an update")
    return HistoryOperation(
        kind,
        int(name) if name.isdigit() else name,
        None if sub_window is None else int(sub_window),
        None if as_of is None else int(as_of),
    )
