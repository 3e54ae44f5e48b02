"""The demonstration: a continuous query over a stream of made-up sales, with a pause in which rows only expire."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sash.cli.session import quiet_engine
from sash.cli.shop import SCHEMA, Shop
from sash.testing import replay

if TYPE_CHECKING:
    from sash.spark.sinks import Running

SQL = "SELECT item_id, COUNT(*) AS sales, SUM(price) AS total FROM sales [RANGE 10 SECONDS] GROUP BY item_id"
ITEMS = ("apples", "bread", "cheese", "dates", "eggs", "figs", "grapes", "honey")
_PAUSE = (0.4, 0.75)
"""The part of the time in which nothing is sold: longer than the window, so that it runs empty."""
_REFRESH = 0.25

Change = tuple[str, datetime, int, int, float]
"""(op, ts, item, sales, total)"""


@dataclass
class Board:
    """The answer, folded from its changes, and what has been seen of it."""

    answer: dict[int, tuple[int, float]] = field(default_factory=dict)
    entered: int = 0
    expired: int = 0
    changes: int = 0
    batches: int = 0
    as_of: datetime | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, changes: Sequence[Change]) -> None:
        """Fold the changes of a batch. A group's count going up is a row that entered, going down one that expired."""
        with self.lock:
            steps: dict[tuple[int, datetime], int] = {}
            for op, ts, item, sales, total in sorted(changes, key=lambda change: (change[1], change[0] == "+")):
                if op == "+":
                    self.answer[item] = (sales, total)
                else:
                    self.answer.pop(item, None)
                steps[item, ts] = steps.get((item, ts), 0) + (sales if op == "+" else -sales)
                self.as_of = ts
            self.batches += 1
            self.changes += len(changes)
            self.entered += sum(step for step in steps.values() if step > 0)
            self.expired -= sum(step for step in steps.values() if step < 0)

    @property
    def live(self) -> int:
        """Sales in the window."""
        return sum(sales for sales, _ in self.answer.values())


class Show:
    """The timetable: it begins with the first answer; the shop pauses in the middle."""

    def __init__(self, board: Board, shop: Shop, running: Running, seconds: float) -> None:
        self.board = board
        self._shop = shop
        self._running = running
        self._seconds = seconds
        self._begun: float | None = None

    def goes_on(self) -> bool:
        """Wait a little, open or close the shop, and say whether there is more to come."""
        time.sleep(_REFRESH)
        if self._begun is None and self.board.changes:
            self._begun = time.monotonic()
        if self._begun is not None:
            part = (time.monotonic() - self._begun) / self._seconds
            self._shop.open = not _PAUSE[0] <= part < _PAUSE[1]
        return self._running.active and self.left > 0

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self._seconds if self._begun is None else self._seconds - (time.monotonic() - self._begun)

    @property
    def mood(self) -> str:
        """What is going on."""
        if self._begun is None:
            return "waiting for the first answer"
        return "sales are coming in" if self._shop.open else "nothing is sold now: rows only expire"


def run_demo(seconds: int, rate: int, *, plain: bool) -> None:
    """Show the query for so many seconds."""
    console = Console()
    console.print(Text(SQL, style="bold"), soft_wrap=True)
    board = Board()
    with ExitStack() as stack:
        with console.status("starting Spark"):
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sash-demo-")))
            engine = stack.enter_context(quiet_engine())
            _compile()
            sales = engine.spark.readStream.schema(SCHEMA).parquet(str(directory))
            engine.stream("sales", sales, slack="1 second", heartbeat="1 second")
            shop = stack.enter_context(Shop(directory, rate, len(ITEMS)))
            running = engine.sql(SQL).start(lambda batch, _: board.apply([tuple(row) for row in batch.collect()]))
            stack.callback(running.stop)
        show = Show(board, shop, running, seconds)
        (_show_lines if plain else _show_table)(console, show)
        if not running.active:
            running.await_termination()  # raises what stopped it
        late = running.progress()["total_late"]
    console.print(
        f"{board.entered:,} sales entered the window and {board.expired:,} left it; the answer changed "
        f"{board.changes:,} times in {board.batches} batches; {late:,} rows came too late.",
        soft_wrap=True,
    )


def _compile() -> None:
    """Compile the query's loops before the clock runs: the first run on a machine has to, later ones find them."""
    schemas = {"sales": "ts BIGINT, item_id INT, price DOUBLE"}
    replay(SQL, {"sales": [{"ts": 0, "item_id": 1, "price": 1.0}]}, until=1, schemas=schemas)


def _show_table(console: Console, show: Show) -> None:
    with Live(_picture(show), console=console, auto_refresh=False) as live:
        while show.goes_on():
            live.update(_picture(show), refresh=True)


def _picture(show: Show) -> Group:
    board = show.board
    table = Table(title="Sales of the last 10 seconds")
    for column in ("item_id", "item", "sales", "total"):
        table.add_column(column, justify="left" if column == "item" else "right")
    table.add_column("", min_width=30)
    with board.lock:
        most = max((sales for sales, _ in board.answer.values()), default=1)
        for item, name in enumerate(ITEMS):
            sales, total = board.answer.get(item, (0, 0.0))
            if sales:
                table.add_row(str(item), name, f"{sales:,}", f"{total:,.2f}", "█" * max(1, 30 * sales // most))
            else:
                table.add_row("", "", "", "", "")
        numbers = (
            f"entered {board.entered:,}   expired {board.expired:,}   in the window {board.live:,}   "
            f"changes {board.changes:,}   batches {board.batches}"
        )
        as_of = "" if board.as_of is None else f"last change at {board.as_of:%H:%M:%S.%f}; "
    return Group(table, Text(numbers), Text(f"{as_of}{show.mood}; {show.left:.0f} s to go", style="dim"))


def _show_lines(console: Console, show: Show) -> None:
    board, shown = show.board, 0
    while show.goes_on():
        with board.lock:
            if board.changes == shown:
                continue
            shown = board.changes
            best = sorted(board.answer.items(), key=lambda row: -row[1][0])[:3]
            answer = ", ".join(f"{ITEMS[item]} {sales} for {total:.2f}" for item, (sales, total) in best)
            console.print(
                f"entered {board.entered:6,}  expired {board.expired:6,}  in the window {board.live:6,}  "
                f"changes {board.changes:7,}  {answer or 'no sales in the window'}  ({show.mood})",
                highlight=False,
                soft_wrap=True,
            )
