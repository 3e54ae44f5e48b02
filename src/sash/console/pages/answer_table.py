"""A table whose rows visibly enter, change and leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui.element import Element

from sash.console.pages.answer_rows import Row, identified, is_number, key_width
from sash.console.pages.formats import cell, count, instant, visible

_LONGEST = 300
_COLUMNS = 60
_COPIES = {"name": "copies", "type": "how often the row is in the answer", "number": True}


class AnswerTable(Element, component="answer_table.js"):
    """Shows answers one after the other. Values are text nodes in the browser, never markup."""

    def __init__(self, empty: str = "No rows") -> None:
        super().__init__()
        self._props["columns"] = []
        self._props["rows"] = []
        self._props["epoch"] = 0
        self._props["empty"] = empty
        self._shown: list[dict[str, Any]] = []

    def show(
        self,
        columns: Sequence[dict[str, Any]],
        rows: Sequence[Row],
        counts: Sequence[int] | None = None,
        *,
        animate: bool = True,
    ) -> None:
        """Show an answer; `counts` tells how often each row is in it. Without `animate` it replaces the last one at once."""
        kinds = [str(column.get("type") or "") for column in columns]
        names = identified(rows, key_width(rows, kinds))
        heads = [
            {"name": visible(column["name"]), "type": kind.lower(), "number": is_number(kind)}
            for column, kind in zip(columns, kinds, strict=True)
        ][:_COLUMNS]
        new: list[dict[str, Any]] = [
            {
                "key": name,
                "cells": [shown(value, kind) for value, kind in zip(row[:_COLUMNS], kinds, strict=False)],
                "absent": [number for number, value in enumerate(row[:_COLUMNS]) if value is None],
            }
            for name, row in zip(names, rows, strict=True)
        ]
        if counts is not None and any(copies != 1 for copies in counts):
            heads.append(_COPIES)
            for row, copies in zip(new, counts, strict=True):
                row["cells"].append(str(copies))
        if new == self._shown and heads == self._props["columns"] and animate:
            return
        self._shown = new
        self._props["columns"] = heads
        self._props["rows"] = new
        if not animate:
            self._props["epoch"] += 1
        self.update()

    def say(self, empty: str) -> None:
        """Set the text that stands in place of rows."""
        if self._props["empty"] != empty:
            self._props["empty"] = empty
            self.update()


def shown(value: Any, kind: str) -> str:
    """Return the text of a value; instants that are given as microseconds are written out."""
    if kind.lower().startswith("timestamp") and isinstance(value, int) and not isinstance(value, bool):
        return instant(value)
    text = cell(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def size_text(answer: dict[str, Any]) -> str:
    """Return how many rows an answer has, and which part of it the table shows.

    >>> size_text({"rows": [[1]], "counts": [2], "total": 2, "columns": [{}]}), size_text({"rows": [[1]], "total": 9000})
    ('2 rows', '9,000 rows, the first 1 shown')
    """
    held = sum(answer.get("counts") or []) or len(answer["rows"])
    total = max(answer.get("total") or 0, held)
    columns = len(answer.get("columns") or [])
    text = f"{count(total)} {'row' if total == 1 else 'rows'}"
    if total > held:
        text += f", the first {count(held)} shown"
    return text + (f", {_COLUMNS} of {count(columns)} columns shown" if columns > _COLUMNS else "")
