"""The demonstration: a continuous query over made-up sales, with a pause in which rows only expire."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from sash.cli.answer import AnswerBoard, Row, answer_table
from sash.cli.plot import plot
from sash.cli.session import quiet_engine
from sash.cli.shop import SCHEMA, Shop
from sash.cli.stories import ITEMS, RELATIONS, STORIES, Story
from sash.plan.options import Strategy
from sash.plan.types import Schema
from sash.testing import replay

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.query import Query
    from sash.running import RunningQuery

_PAUSE = (0.4, 0.75)
"""The part of the time in which nothing is sold: longer than the window, so that it runs empty."""
_REFRESH = 0.25
_HEIGHT, _WIDTH = 6, 72
_ROWS = 8
"""Rows of the answer that are shown: no story has many more."""


class Board(AnswerBoard):
    """The answer, and how what is plotted of it has changed with time."""

    def __init__(self, story: Story, schema: Schema) -> None:
        super().__init__(schema)
        self._story = story
        self._columns = [field.name for field in schema]
        self.value = 0.0
        self.steps: list[tuple[float, float]] = []

    def apply(self, changes: list[tuple[str, Any, Row]]) -> None:
        super().apply(changes)
        self.fresh.clear()
        for op, ts, row in sorted(changes, key=lambda change: change[1]):
            self.value += self._story.weight(self._columns, row) * (1 if op == "+" else -1)
            at = ts.timestamp()
            if self.steps and self.steps[-1][0] == at:
                self.steps.pop()
            self.steps.append((at, round(self.value, 6)))


class Show:
    """The timetable: it begins with the first answer; the shops pause in the middle. And what is known of the query."""

    def __init__(
        self, story: Story, board: Board, shops: Sequence[Shop], running: RunningQuery, seconds: float
    ) -> None:
        self.story = story
        self.board = board
        self.seconds = seconds
        self.expired = 0
        self.progress: dict[str, Any] = {}
        self._shops = shops
        self._running = running
        self._begun: float | None = None

    def goes_on(self) -> bool:
        """Wait a little, open or close the shops, and say whether there is more to come."""
        time.sleep(_REFRESH)
        if self._begun is None and self.board.changes:
            self._begun = time.monotonic()
        if self._begun is not None:
            part = (time.monotonic() - self._begun) / self.seconds
            for shop in self._shops:
                shop.open = not _PAUSE[0] <= part < _PAUSE[1]
        self.count()
        return self._running.active and self.left > 0

    def count(self) -> None:
        """Take in the batches that ended."""
        for progress in self._running.drain_progress():
            self.progress = progress
            self.expired += progress.get("expired", 0)

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.seconds if self._begun is None else self.seconds - (time.monotonic() - self._begun)

    @property
    def mood(self) -> str:
        """What is going on."""
        if self._begun is None:
            return "waiting for the first answer"
        return "sales are coming in" if self._shops[0].open else "nothing is sold now: rows only expire"

    @property
    def numbers(self) -> str:
        """Rows that came and rows that ended, the answer's changes, and how late they were."""
        delay = (self.progress.get("delay_seconds") or {}).get("average")
        late = "" if delay is None else f"   output delay {delay:.2f} s"
        return (
            f"sales {self.progress.get('total_rows_in', 0):,}   rows in the window {self.progress.get('state_rows', 0):,}   "
            f"expired {self.expired:,}   changes {self.board.changes:,}   batches {self.board.batches}{late}"
        )


def run_demo(name: str, strategy: Strategy, seconds: int, rate: int, *, plain: bool) -> None:
    """Tell a story for so many seconds."""
    console, story = Console(), STORIES[name]
    console.print(Text(story.title, style="bold"))
    console.print(Text(story.sql, style="cyan"), soft_wrap=True)
    with ExitStack() as stack:
        with console.status("starting Spark"):
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sash-demo-")))
            engine = stack.enter_context(quiet_engine())
            _compile(story, strategy)
            shops = [
                stack.enter_context(Shop(home / stream, round(rate * share), len(ITEMS), whole=story.whole_prices))
                for stream, share in story.streams
            ]
            query = _query(engine, story, strategy, home)
        console.print(Text(physical_plan(query.explain()), style="dim"), soft_wrap=True)
        board = Board(story, query.schema)
        running = query.start(board)
        stack.callback(running.stop)
        show = Show(story, board, shops, running, seconds)
        (_show_lines if plain else _show_table)(console, show)
        if not running.active:
            running.await_termination()  # raises what stopped it
        show.count()
        late = running.progress()["total_late"]
    console.print(
        f"{show.progress.get('total_rows_in', 0):,} sales came and {show.expired:,} rows expired; the answer changed "
        f"{board.changes:,} times in {board.batches} batches; {late:,} rows came too late.",
        soft_wrap=True,
    )


def _query(engine: Engine, story: Story, strategy: Strategy, home: Path) -> Query:
    for stream, _ in story.streams:
        frame = engine.spark.readStream.schema(SCHEMA).parquet(str(home / stream))
        engine.stream(stream, frame, slack="1 second", heartbeat="1 second")
    for name in story.relations:
        columns, rows = RELATIONS[name]
        engine.relation(name, engine.spark.createDataFrame(rows, columns))
    return engine.sql(story.sql, strategy=strategy)


def physical_plan(explained: str) -> str:
    """Of EXPLAIN, how the query is run: operators, buffers, and on every edge the update pattern."""
    parts = explained.split("\n\n")
    return next(part for part in parts if part.startswith("Physical plan")).rstrip()


def _compile(story: Story, strategy: Strategy) -> None:
    """Compile the query's loops before the clock runs: the first run on a machine has to, later ones find them."""
    columns = SCHEMA.replace("TIMESTAMP", "BIGINT")
    schemas = {stream: columns for stream, _ in story.streams} | {name: RELATIONS[name][0] for name in story.relations}
    sale = {"ts": 0, "store_id": 0, "item_id": 4, "price": 16.0, "quantity": 1}
    relations = {
        name: [dict(zip((c.split()[0] for c in RELATIONS[name][0].split(", ")), row, strict=True))]
        for name in story.relations
        for row in RELATIONS[name][1][:1]
    }
    replay(
        story.sql,
        {stream: [sale] for stream, _ in story.streams},
        relations,
        strategy=strategy,
        until=1,
        schemas=schemas,
    )


def _show_table(console: Console, show: Show) -> None:
    with Live(_picture(show), console=console, auto_refresh=False) as live:
        while show.goes_on():
            live.update(_picture(show), refresh=True)


def _picture(show: Show) -> Group:
    board = show.board
    with board.lock:
        table = answer_table(board, _ROWS)
        for _ in range(_ROWS - table.row_count if len(board.schema) > 1 else 0):
            table.add_row()  # so that the picture keeps its height
        drawn = _plot(show)
        as_of = f"last change at {board.as_of:%H:%M:%S.%f}; " if isinstance(board.as_of, datetime) else ""
    return Group(table, *drawn, Text(show.numbers), Text(f"{as_of}{show.mood}; {show.left:.0f} s to go", style="dim"))


def _plot(show: Show) -> list[Text]:
    """What is plotted, from the first change to the last; it fills the width as the story goes on."""
    board = show.board
    start, now = (board.steps[0][0], board.steps[-1][0]) if board.steps else (0.0, 0.0)
    width = max(1, min(_WIDTH, round(_WIDTH * (now - start) / show.seconds)))
    lines = plot(board.steps, start, max(now, start + 1e-6), width=width, height=_HEIGHT)
    what = f"{show.story.plotted or 'rows'} of the answer, over {now - start:.0f} s"
    label = f"{what}; now {board.value:,.2f}".replace(".00", "")
    return [Text(label, style="bold"), *(Text(f"▕{line}", style="green") for line in lines)]


def _show_lines(console: Console, show: Show) -> None:
    board, shown = show.board, 0
    while show.goes_on():
        with board.lock:
            if board.changes == shown:
                continue
            shown = board.changes
            names = [field.name for field in board.schema]
            rows = ["/".join(map(_word, row)) for row in board.answer()[:4]]
            listed = f"{','.join(names)}: {' '.join(rows)}" if rows else "the answer is empty"
        console.print(f"{show.numbers}   {listed}   ({show.mood})", highlight=False, soft_wrap=True, markup=False)


def _word(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "NULL" if value is None else str(value)
