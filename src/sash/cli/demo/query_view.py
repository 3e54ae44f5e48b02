"""`sash demo --query`: one continuous query over generated sales, with a pause during which rows only expire."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from sash.answer import Row
from sash.cli.answer import AnswerBoard, answer_table
from sash.cli.demo.chart import columns, sampled
from sash.cli.demo.queries import DEMO_QUERIES, ITEMS, RELATIONS, DemoQuery
from sash.cli.demo.sales import SCHEMA, SalesGenerator
from sash.cli.session import quiet_engine
from sash.plan.options import Strategy
from sash.plan.types import Schema
from sash.testing import replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.engine import Engine
    from sash.query import Query
    from sash.running import RunningQuery

_PAUSE = (0.4, 0.75)
"""Start and end of the pause, as parts of the run: longer than the window, so that the window empties."""
_REFRESH = 0.25
_HEIGHT, _WIDTH = 6, 72
_ROWS = 8
"""Rows of the answer that are shown: no query has many more."""


class DemoBoard(AnswerBoard):
    """The answer, the plotted value over time, and the counts of rows, all as of the same batch.

    The changes of a batch wait until its progress is there.
    """

    def __init__(self, demo: DemoQuery, schema: Schema) -> None:
        super().__init__(schema)
        self._demo = demo
        self._columns = [column.name for column in schema]
        self._pending: dict[int, list[tuple[str, Any, Row]]] = {}
        self.value = 0.0
        self.steps: list[tuple[float, float]] = []
        self.expired = 0
        self.progress: dict[str, Any] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Keep the changes of a batch until its progress is there; a function sink."""
        changes = [(row[0], row[1], tuple(row[2:])) for row in batch.collect()]
        with self.lock:
            self._pending[number] = changes

    def advance(self, progress: dict[str, Any]) -> None:
        """Apply the changes of a batch, and count its rows."""
        with self.lock:
            self.apply(self._pending.pop(progress["batch"], []))
            self.progress = progress
            self.expired += progress.get("expired", 0)

    def apply(self, changes: list[tuple[str, Any, Row]]) -> None:
        super().apply(changes)
        self.fresh.clear()
        for op, ts, row in sorted(changes, key=lambda change: change[1]):
            self.value += self._demo.weight(self._columns, row) * (1 if op == "+" else -1)
            at = ts.timestamp()
            if self.steps and self.steps[-1][0] == at:
                self.steps.pop()
            self.steps.append((at, round(self.value, 6)))


@dataclass
class DemoRun:
    """Times the run and counts what the query did. The run begins with the first answer; sales pause in the middle."""

    demo: DemoQuery
    board: DemoBoard
    generators: Sequence[SalesGenerator]
    running: RunningQuery
    seconds: float
    _begun: float | None = None

    def step(self) -> bool:
        """Wait a little, pause or resume the sales, and return whether the run goes on."""
        time.sleep(_REFRESH)
        if self._begun is None and self.board.changes:
            self._begun = time.monotonic()
        if self._begun is not None:
            part = (time.monotonic() - self._begun) / self.seconds
            for generator in self.generators:
                generator.paused = _PAUSE[0] <= part < _PAUSE[1]
        self.count()
        return self.running.active and self.left > 0

    def count(self) -> None:
        """Take in the batches that have ended since the last call."""
        for progress in self.running.drain_progress():
            self.board.advance(progress)

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.seconds if self._begun is None else self.seconds - (time.monotonic() - self._begun)

    @property
    def phase(self) -> str:
        """The phase of the run, as text for the screen."""
        if self._begun is None:
            return "waiting for the first answer"
        return "sales paused: rows only expire" if self.generators[0].paused else "sales are arriving"

    @property
    def numbers(self) -> str:
        """Counts of rows and changes so far, and the output delay of the last batch."""
        board, progress = self.board, self.board.progress
        delay = (progress.get("delay_seconds") or {}).get("average")
        late = "" if delay is None else f"   output delay {delay:.2f} s"
        return (
            f"sales {progress.get('total_rows_in', 0):,}   rows in the window {progress.get('state_rows', 0):,}   "
            f"expired {board.expired:,}   changes {board.changes:,}   batches {board.batches}{late}"
        )


def run_query(name: str, strategy: Strategy, seconds: int, rate: int, *, plain: bool, explain: bool) -> None:
    """Run a demo query for so many seconds."""
    console, demo = Console(), DEMO_QUERIES[name]
    console.print(Text(demo.title, style="bold"))
    console.print(Text(demo.sql), soft_wrap=True)
    with ExitStack() as stack:
        with console.status("Starting Spark"):
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sash-demo-")))
            engine = stack.enter_context(quiet_engine())
            _compile(demo, strategy)
            generators = [
                stack.enter_context(
                    SalesGenerator(home / stream, round(rate * factor), len(ITEMS), whole=demo.whole_prices)
                )
                for stream, factor in demo.streams
            ]
            query = _query(engine, demo, strategy, home)
        if explain:
            console.print(Text(query.explain()), soft_wrap=True)
        board = DemoBoard(demo, query.schema)
        running = query.start(board)
        stack.callback(running.stop)
        run = DemoRun(demo, board, generators, running, seconds)
        (_show_lines if plain else _show_table)(console, run)
        if not running.active:
            running.await_termination()  # raises the error that stopped it
        run.count()
        late = running.progress()["total_late"]
    console.print(
        f"{board.progress.get('total_rows_in', 0):,} sales arrived and {board.expired:,} rows expired; the answer changed "
        f"{board.changes:,} times in {board.batches} batches; {late:,} rows were too late.",
        soft_wrap=True,
    )


def _query(engine: Engine, demo: DemoQuery, strategy: Strategy, home: Path) -> Query:
    for stream, _ in demo.streams:
        frame = engine.spark.readStream.schema(SCHEMA).parquet(str(home / stream))
        engine.stream(stream, frame, slack="1 second", heartbeat="1 second")
    for name in demo.relations:
        columns, rows = RELATIONS[name]
        engine.relation(name, engine.spark.createDataFrame(rows, columns))
    return engine.sql(demo.sql, strategy=strategy)


def _compile(demo: DemoQuery, strategy: Strategy) -> None:
    """Compile the query's numba kernels before the run; later runs on this machine find them in the cache."""
    columns = SCHEMA.replace("TIMESTAMP", "BIGINT")
    schemas = {stream: columns for stream, _ in demo.streams} | {name: RELATIONS[name][0] for name in demo.relations}
    sale = {"ts": 0, "store_id": 0, "item_id": 4, "price": 16.0, "quantity": 1}
    relations = {
        name: [dict(zip((c.split()[0] for c in RELATIONS[name][0].split(", ")), row, strict=True))]
        for name in demo.relations
        for row in RELATIONS[name][1][:1]
    }
    replay(
        demo.sql, {stream: [sale] for stream, _ in demo.streams}, relations, strategy=strategy, until=1, schemas=schemas
    )


def _show_table(console: Console, run: DemoRun) -> None:
    with Live(_picture(run), console=console, auto_refresh=False) as live:
        while run.step():
            live.update(_picture(run), refresh=True)


def _picture(run: DemoRun) -> Group:
    board = run.board
    with board.lock:
        table = answer_table(board, _ROWS)
        for _ in range(_ROWS - table.row_count if len(board.schema) > 1 else 0):
            table.add_row()  # keeps the height of the picture
        drawn = _plot(run)
        as_of = f"last change at {board.as_of:%H:%M:%S.%f}; " if isinstance(board.as_of, datetime) else ""
    return Group(table, *drawn, Text(run.numbers), Text(f"{as_of}{run.phase}; {run.left:.0f} s to go", style="dim"))


def _plot(run: DemoRun) -> list[Text]:
    """The plotted value from the first change to the last; the plot grows to the full width during the run."""
    board = run.board
    start, now = (board.steps[0][0], board.steps[-1][0]) if board.steps else (0.0, 0.0)
    width = max(1, min(_WIDTH, round(_WIDTH * (now - start) / run.seconds)))
    values = sampled(board.steps, start, max(now, start + 1e-6), width)
    lines = columns(values, max(values), _HEIGHT)
    what = f"{run.demo.plotted or 'rows'} of the answer, over {now - start:.0f} s"
    label = f"{what}; now {board.value:,.2f}".replace(".00", "")
    return [Text(label, style="bold"), *(Text(f"▕{line}", style="green") for line in lines)]


def _show_lines(console: Console, run: DemoRun) -> None:
    board, shown = run.board, 0
    while run.step():
        with board.lock:
            if board.changes == shown:
                continue
            shown = board.changes
            names = [column.name for column in board.schema]
            rows = ["/".join(map(_word, row)) for row in board.answer()[:4]]
            listed = f"{','.join(names)}: {' '.join(rows)}" if rows else "the answer is empty"
        console.print(f"{run.numbers}   {listed}   ({run.phase})", highlight=False, soft_wrap=True, markup=False)


def _word(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "NULL" if value is None else str(value)
