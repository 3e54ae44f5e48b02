"""Shows the replies to statements on a console: as text and tables, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sash.cli.answer import cell
from sash.script.replies import MessageReply, TableReply


@dataclass(frozen=True)
class ReplyView:
    """Shows replies and errors; the form `json` is for programs."""

    console: Console
    form: str

    def show(self, reply: MessageReply | TableReply) -> None:
        """Show a reply."""
        match reply:
            case MessageReply() if self.form == "json":
                self.console.out(json.dumps({"message": reply.text}), highlight=False)
            case MessageReply():
                self.console.print(reply.text, markup=False, highlight=False, soft_wrap=True)
            case TableReply() if self.form == "json":
                for row in reply.rows:
                    named = dict(zip(reply.columns, row, strict=True))
                    self.console.out(json.dumps(named, default=str), highlight=False)
            case TableReply():
                self._show_rows(reply.columns, [list(map(cell, row)) for row in reply.rows])
                if reply.note:
                    self.console.print(reply.note, style="dim", markup=False, highlight=False)

    def _show_rows(self, columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
        """Show a table; if it is wider than the console, show each row as lines of names and values."""
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        if rows and sum(widths) + 3 * len(widths) + 1 > self.console.width:
            longest = max(map(len, columns))
            for number, row in enumerate(rows):
                lines = [f"{name:<{longest}}  {value.plain}" for name, value in zip(columns, row, strict=True)]
                self.console.out(*([""] if number else []), *lines, sep="\n", highlight=False)
            return
        table = Table(*columns)
        for row in rows:
            table.add_row(*row)
        self.console.print(table)

    def show_error(self, message: str, log: str | None = None) -> None:
        """Show an error: on standard error, or as JSON; `log` is the file with the full trace, if there is one."""
        if self.form == "json":
            shown = {"error": message} if log is None else {"error": message, "log": log}
            self.console.out(json.dumps(shown), highlight=False)
        else:
            message += "" if log is None else f"\nThe full trace is in {log}"
            Console(stderr=True).print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
