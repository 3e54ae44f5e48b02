"""The answer of a query on the screen: as a table that is updated in place, or as a line per change."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sash.answer import CurrentAnswer, Row
from sash.plan.nodes import SortKey
from sash.plan.types import Schema, is_numeric

if TYPE_CHECKING:
    from sash.query import Query
    from sash.running import RunningQuery

_REFRESH = 0.25
_MARGIN = 8
"""Lines of the screen that do not show rows of the answer."""


class AnswerBoard(CurrentAnswer):
    """The current answer, and the changes that have not been shown yet."""

    def __init__(self, schema: Schema, order: Sequence[SortKey] = ()) -> None:
        super().__init__(schema, order)
        self.fresh: list[tuple[str, Any, Row]] = []

    def record(self, changes: list[tuple[str, Any, Row]]) -> None:
        """Keep the changes until they are shown."""
        self.fresh += changes


@dataclass
class TimeLimit:
    """Ends the display of an answer after `seconds` (None: never), counted from the first row of the answer.

    It also ends if the first row does not come within `patience` seconds; then it was `in_vain`.
    """

    seconds: float | None = None
    patience: float = 120.0
    clock: Callable[[], float] = time.monotonic
    in_vain: bool = False
    _started: float | None = None
    _first: float | None = None

    def passed(self, changes: int) -> bool:
        """Whether the time is over, after this number of changes of the answer."""
        if self.seconds is None:
            return False
        now = self.clock()
        if self._started is None:
            self._started = now
        if self._first is None and changes:
            self._first = now
        if self._first is not None:
            return now - self._first >= self.seconds
        self.in_vain = now - self._started >= max(self.patience, self.seconds)
        return self.in_vain


def watch(
    query: Query,
    console: Console,
    stop: threading.Event,
    trigger: str | None,
    *,
    form: str,
    limit: TimeLimit | None = None,
) -> None:
    """Run a query and show its answer until it ends, `stop` is set, or the time is over.

    The form is `live`, `plain` or `json`.
    """
    board = AnswerBoard(query.schema, query.planned.order)
    limit = limit or TimeLimit()
    running = query.start(board, mode="net", trigger=trigger)
    try:
        if form == "live":
            _watch_live(board, running, console, stop, limit)
        else:
            _watch_lines(board, running, console, stop, limit, as_json=form == "json")
        if not running.active and not stop.is_set():
            running.await_termination()  # raises the error that ended it
        late = running.progress()["total_late"]
    finally:
        running.stop()
    if form != "json":
        with board.lock:
            if form == "plain":
                console.print(answer_table(board, len(board.rows)))
                console.print(_counts(board), style="dim")
            if late:
                console.print(f"{late:,} rows were too late", style="dim")


def _watch_live(
    board: AnswerBoard, running: RunningQuery, console: Console, stop: threading.Event, limit: TimeLimit
) -> None:
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while running.active and not stop.wait(_REFRESH) and not limit.passed(board.changes):
            live.update(_picture(board, console, "; press Ctrl-C to stop"), refresh=True)
        live.update(_picture(board, console, ""), refresh=True)


def _watch_lines(
    board: AnswerBoard,
    running: RunningQuery,
    console: Console,
    stop: threading.Event,
    limit: TimeLimit,
    *,
    as_json: bool,
) -> None:
    active = True
    while active:
        active = running.active and not stop.wait(_REFRESH) and not limit.passed(board.changes)
        with board.lock:
            fresh, board.fresh = board.fresh, []
            for op, ts, row in fresh:
                named = {field.name: value for field, value in zip(board.schema, row, strict=True)}
                plain = f"{op} {ts}  " + ", ".join(f"{name}={value}" for name, value in named.items())
                line = json.dumps({"op": op, "ts": ts, "row": named}, default=str) if as_json else plain
                console.out(line, highlight=False)


def _picture(board: AnswerBoard, console: Console, hint: str) -> Group:
    with board.lock:
        room = max(3, console.height - _MARGIN)
        table = answer_table(board, room)
        hidden = sum(board.rows.values()) - room
        board.fresh.clear()
        more = f"{hidden:,} more rows not shown; " if hidden > 0 else ""
        if board.changes:
            state = f"{more}last change at {board.as_of}; {_counts(board)}"
        else:
            state = (
                f"waiting for the first change; {_counts(board)}" if board.batches else "waiting for the first batch"
            )
    return Group(table, Text(f"{state}{hint}", style="dim"))


def _counts(board: AnswerBoard) -> str:
    return f"{board.changes:,} changes in {board.batches:,} {'batch' if board.batches == 1 else 'batches'}"


def answer_table(board: AnswerBoard, most: int) -> Table:
    """The first `most` rows of the answer as a table."""
    table = Table()
    for field in board.schema:
        table.add_column(field.name, justify="right" if is_numeric(field.dtype) else "left", overflow="fold")
    for row in board.answer()[:most]:
        table.add_row(*map(cell, row))
    return table


def cell(value: Any) -> Text:
    """A value as text; the style of NULL differs from that of a string "NULL"."""
    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, float):
        return Text(f"{value:,.6g}" if value != round(value, 2) else f"{value:,.2f}")
    if isinstance(value, bytes | bytearray):
        return Text(f"0x{value.hex()}")
    return Text(str(value))
