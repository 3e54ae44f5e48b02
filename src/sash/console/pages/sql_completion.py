"""Completion of streams and columns in an SQL editor."""

from __future__ import annotations

from nicegui import ui
from nicegui.element import Element

from sash.console.pages.model import Values


class SqlCompletion(Element, component="sql_completion.js"):
    """Offers the names of a catalog in a CodeMirror editor, besides the key words that it knows."""

    def __init__(self, editor: ui.codemirror) -> None:
        super().__init__()
        self._props["editor"] = editor.id
        self._props["catalog"] = []

    def offer(self, catalog: list[Values]) -> None:
        """Set the streams, relations and windows with their columns."""
        if self._props["catalog"] != catalog:
            self._props["catalog"] = catalog
            self.update()
