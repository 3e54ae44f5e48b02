"""Shows the replies to statements on a console: as text and tables, or as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

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
                table = Table(*reply.columns)
                for row in reply.rows:
                    table.add_row(*map(cell, row))
                self.console.print(table)
                if reply.note:
                    self.console.print(reply.note, style="dim", markup=False, highlight=False)

    def show_error(self, message: str, log: str | None = None) -> None:
        """Show an error: on standard error, or as JSON; `log` is the file with the full trace, if there is one."""
        if self.form == "json":
            shown = {"error": message} if log is None else {"error": message, "log": log}
            self.console.out(json.dumps(shown), highlight=False)
        else:
            message += "" if log is None else f"\nThe full trace is in {log}"
            Console(stderr=True).print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
