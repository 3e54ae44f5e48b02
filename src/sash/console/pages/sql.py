"""The page of SQL: an editor with completion, errors at their place, a preview, and adding a query to the job."""

from __future__ import annotations

import re

from nicegui import ui

from sash.console.pages import formats
from sash.console.pages.answer_table import AnswerTable, size_text
from sash.console.pages.frame import Fragment, card, every_second, fact, facts, listing, problem_text, while_it_runs
from sash.console.pages.markup import Child, tag
from sash.console.pages.model import Poll, Values, in_thread
from sash.console.pages.sql_completion import SqlCompletion
from sash.errors import SqlSyntaxError

_SECONDS = 5
_ROWS = 200
_PAUSE = 0.4
_SELECT = re.compile(r"\s*(?:\(|(?:select|with|values|from)\b)", re.IGNORECASE)


class SqlPage:
    """The editor and what became of its text."""

    def __init__(self, poll: Poll) -> None:
        self.poll = poll
        self.checked: str | None = None
        with card("SQL"):
            self.editor = ui.codemirror(language="SQL", theme="vscodeLight", line_wrapping=True).classes("editor")
            self.completion = SqlCompletion(self.editor)
            self.problems = Fragment().style("margin-top: 8px; min-height: 21px")
            with ui.element("div").classes("bar").style("margin-top: 8px"):
                self.preview = ui.button(f"Preview for {_SECONDS} seconds", on_click=self._preview)
                self.name = ui.input("Name of the query").props("dense outlined").style("width: 200px")
                self.add = ui.button("Add to job", on_click=self._add).props("outline")
                if not poll.view.allow_changes:
                    self.add.disable()
                    self.name.set_visibility(False)
                    Fragment(
                        tag("span", "Read-only: start the console with --allow-changes to add queries.", class_="soft")
                    )
        with card("Preview"):
            self.outcome = Fragment(
                tag("div", "A preview runs a SELECT for some seconds, without a sink.", class_="empty")
            )
            self.table = AnswerTable("")
        with card("Streams, relations and windows"):
            self.catalog = Fragment()
        ui.timer(_PAUSE, self._check)
        every_second(self._offer)

    async def _offer(self) -> None:
        catalog = await self.poll.read(self.poll.view.catalog)
        self.completion.offer(catalog)
        rows: list[list[Child]] = [
            [
                tag("strong", entry["name"]),
                entry.get("kind"),
                tag("span", ", ".join(f"{c['name']} {c['type']}" for c in entry["columns"]), class_="mono long"),
            ]
            for entry in catalog
        ]
        state = str((await self.poll.read(self.poll.view.status)).get("state"))
        none = while_it_runs(state, "catalog", "Nothing is declared")
        self.catalog.show(listing([("Name", False), ("Kind", False), ("Columns", False)], rows, none))

    async def _check(self) -> None:
        """Check the text once it has stopped changing."""
        text = self.editor.value or ""
        if text == self.checked:
            return
        self.checked = text
        try:
            found = await in_thread(self.poll.view.check, text) if text.strip() else []
        except Exception as problem:  # noqa: BLE001  (it is shown)
            found = [_problem(problem)]
        if text == (self.editor.value or ""):
            self.mark(found or [])

    def mark(self, problems: list[Values]) -> None:
        """Mark errors at their place, and list them below the editor."""
        text = self.editor.value or ""
        self.editor.decorations = [mark for problem in problems if (mark := decoration(text, problem)) is not None]
        self.problems.show([tag("div", _text(problem), class_="error") for problem in problems])

    async def _preview(self) -> None:
        text = self.editor.value or ""
        self.preview.disable()
        self.outcome.show(tag("div", f"Running for {_SECONDS} seconds …", class_="soft"))
        try:
            found = await in_thread(self.poll.view.preview, text, _SECONDS, _ROWS)
        except Exception as problem:  # noqa: BLE001  (it is shown)
            self.mark([_problem(problem)])
            self.outcome.show(tag("div", "The preview did not run: see the error above.", class_="note"))
            self.table.say("")
            self.table.show([], [])
        else:
            self.mark([])
            self.outcome.show(
                facts(
                    fact("As of", formats.instant(found.get("as_of"), date=False)),
                    fact("Changes", formats.count(found.get("changes"))),
                    fact("Answer", size_text(found), found.get("note")),
                )
            )
            self.table.say("The answer has no rows")
            self.table.show(found["columns"], found["rows"], found.get("counts"), animate=False)
        finally:
            self.preview.enable()

    async def _add(self) -> None:
        text, name = self.editor.value or "", (self.name.value or "").strip()
        select = _SELECT.match(text) is not None
        if select and not name:
            self.problems.show(
                tag("div", "Give the query a name, or write CREATE QUERY name AS SELECT ...", class_="error")
            )
            return
        self.add.disable()
        try:
            reply = await in_thread(self.poll.view.add, creation(name, text) if select else text)
        except Exception as problem:  # noqa: BLE001  (it is shown)
            found = _problem(problem)
            if select and found["line"] is not None:
                found["line"] -= 1
            self.mark([found])
        else:
            self.mark([])
            self.problems.show(tag("div", reply, class_="plus"))
        finally:
            self.add.enable()


def creation(name: str, select: str) -> str:
    """Return the statement that makes a query of a SELECT, which begins on its second line.

    >>> print(creation("last hour", "SELECT 1"))
    CREATE QUERY `last hour` AS
    SELECT 1
    """
    quoted = name.replace("`", "``")
    return f"CREATE QUERY `{quoted}` AS\n{select}"


def decoration(text: str, problem: Values) -> Values | None:
    r"""Return the mark of an error in the text: the word at its place, or the character before it at the end of the text.

    >>> decoration("SELECT a\nFRM b", {"line": 2, "column": 1, "text": "?"})
    {'kind': 'mark', 'from': 9, 'to': 12, 'class': 'cm-wrong'}
    """
    if problem.get("line") is None or not text:
        return None
    lines = text.split("\n")
    line = min(max(1, problem["line"]), len(lines))
    begin = sum(len(before) + 1 for before in lines[: line - 1]) + max(0, (problem.get("column") or 1) - 1)
    begin = min(begin, len(text) - 1)
    end = begin + (problem.get("length") or 0)
    if end == begin:
        end += 1
        while (
            end < len(text)
            and (text[end].isalnum() or text[end] == "_")
            and (text[begin].isalnum() or text[begin] == "_")
        ):
            end += 1
    return {"kind": "mark", "from": begin, "to": min(end, len(text)), "class": "cm-wrong"}


def _problem(error: Exception) -> Values:
    if isinstance(error, SqlSyntaxError):
        return {"line": error.line, "column": error.column, "text": error.message}
    return {"line": None, "column": None, "text": problem_text(error)}


def _text(problem: Values) -> str:
    where = f"Line {problem['line']}, column {problem.get('column')}: " if problem.get("line") is not None else ""
    return f"{where}{problem['text']}"
