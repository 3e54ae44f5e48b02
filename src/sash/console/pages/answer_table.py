"""A table whose rows visibly enter, change and leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui.element import Element

from sash.console.pages.answer_rows import Row, identified, is_number, key_width
from sash.console.pages.formats import cell, instant

_LONGEST = 300


class AnswerTable(Element, component="answer_table.js"):
    """Shows answers one after the other. Values are text nodes in the browser, never markup."""

    def __init__(self, empty: str = "No rows") -> None:
        super().__init__()
        self._props["columns"] = []
        self._props["rows"] = []
        self._props["epoch"] = 0
        self._props["empty"] = empty
        self._shown: list[tuple[str, tuple[str, ...]]] = []

    def show(self, columns: Sequence[dict[str, Any]], rows: Sequence[Row], *, animate: bool = True) -> None:
        """Show an answer. Without `animate` it replaces the last one at once, as if it were another."""
        kinds = [str(column.get("type") or "") for column in columns]
        width = key_width(rows, kinds)
        texts = [tuple(shown(value, kind) for value, kind in zip(row, kinds, strict=False)) for row in rows]
        new = list(zip(identified(rows, width), texts, strict=True))
        heads = [
            {"name": column["name"], "type": kind.lower(), "number": is_number(kind)}
            for column, kind in zip(columns, kinds, strict=True)
        ]
        if new == self._shown and heads == self._props["columns"] and animate:
            return
        self._shown = new
        self._props["columns"] = heads
        self._props["rows"] = [{"key": key, "cells": list(cells)} for key, cells in new]
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
