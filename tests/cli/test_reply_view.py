from __future__ import annotations

import io

from rich.console import Console

from sash.cli.reply_view import ReplyView
from sash.script.replies import TableReply

REPLY = TableReply(("query", "state", "rows out"), [("totals", "running", 12), ("items", None, 0)])


def shown(width: int) -> str:
    text = io.StringIO()
    ReplyView(Console(file=text, width=width), "plain").show(REPLY)
    return text.getvalue()


def test_a_table_that_fits_is_a_table() -> None:
    lines = shown(40).splitlines()
    assert [part.strip() for part in lines[1].strip("┃").split("┃")] == ["query", "state", "rows out"]
    assert "totals │ running │ 12" in lines[3]


def test_a_table_that_is_too_wide_is_shown_as_lines_of_names_and_values() -> None:
    assert shown(20) == (
        "query     totals\nstate     running\nrows out  12\n\nquery     items\nstate     NULL\nrows out  0\n"
    )
