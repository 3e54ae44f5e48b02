"""A running answer in this process: read it as rows or as a table, and watch it in a notebook or a terminal."""

from __future__ import annotations

import datetime
import sys
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from sash.answer import CurrentAnswer
from sash.arguments import check_number
from sash.display import TextTable, counted, section
from sash.plan.sql_types import exported
from sash.plan.types import TIMESTAMP

if TYPE_CHECKING:
    import pandas as pd

    from sash.running import RunningQuery

_REFRESH = 0.25
_MOST_ROWS = 20


class LiveAnswer:
    """The answer of a query that runs, made by `Query.live`.

    As the last line of a notebook's cell, it shows the answer, which is updated in place while the query runs and other
    cells are executed. In a terminal, `show()` does so. As a context manager it stops the query.
    """

    def __init__(self, current: CurrentAnswer, running: RunningQuery) -> None:
        self._current = current
        self.running = running

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def rows(self) -> list[dict[str, Any]]:
        """The answer now, in the order of the query; timestamps are datetimes in UTC."""
        names = [column.name for column in self._current.schema]
        return [dict(zip(names, row, strict=True)) for row in self._rows()]

    def to_arrow(self) -> pa.Table:
        """The answer now as an Arrow table."""
        rows = self._rows()
        columns = [[row[at] for row in rows] for at in range(len(self._current.schema))]
        typed = [pa.array(values, exported(f.dtype)) for values, f in zip(columns, self._current.schema, strict=True)]
        return pa.table(typed, names=[column.name for column in self._current.schema])

    def to_pandas(self) -> pd.DataFrame:
        """The answer now as a pandas DataFrame."""
        found: pd.DataFrame = self.to_arrow().to_pandas()
        return found

    def process_all_available(self) -> None:
        """Wait until all rows that are in the sources now have been processed."""
        self.running.process_all_available()

    def stop(self) -> None:
        """Stop the query; the answer stays as it is."""
        self.running.stop()

    def show(self, seconds: float | None = None) -> None:
        """Show the answer, updated in place.

        In a terminal until the query ends, `seconds` have passed, or Ctrl-C, which does not stop the query. In a notebook
        this returns at once, and the answer is updated in the background, for `seconds` or while the query runs. Where
        nothing can be updated in place, as in a pipe, it is printed once at the end.
        """
        end = None if seconds is None else time.monotonic() + check_number("seconds", seconds)
        if _in_notebook():
            self._show_in_notebook(end)
        else:
            self._show_in_terminal(end)

    def __repr__(self) -> str:
        return f"{self._table().plain()}\n{self._state()}"

    def _repr_html_(self) -> str:
        return section(self._state(), self._table().html())

    def _ipython_display_(self) -> None:
        if _in_notebook():
            self._show_in_notebook(None)
        else:
            print(self)  # noqa: T201  (IPython in a terminal)

    def _rows(self) -> list[tuple[Any, ...]]:
        """The answer with timestamps in UTC: Spark returns them in the zone of this process, without naming it."""
        with self._current.lock:
            rows = self._current.answer()
        times = {at for at, column in enumerate(self._current.schema) if column.dtype == TIMESTAMP}
        return [tuple(_in_utc(value) if at in times else value for at, value in enumerate(row)) for row in rows]

    def _table(self) -> TextTable:
        return TextTable([c.name for c in self._current.schema], self._rows(), most=_MOST_ROWS, ends=False)

    def _state(self) -> str:
        """One line: whether the query runs, the time of its last change, and the numbers of batches and changes."""
        current, running = self._current, self.running
        problem = None if running.active else running.exception()
        state = "running" if running.active else "stopped" if problem is None else f"failed: {problem}"
        if not current.batches:
            return (
                f"{running.name}: {state}; waiting for the first batch"
                if running.active
                else f"{running.name}: {state}"
            )
        changes = counted(current.changes, "change", "changes")
        batches = counted(current.batches, "batch", "batches")
        last = "" if current.as_of is None else f"; last change at {_in_utc(current.as_of)}"
        return f"{running.name}: {state}{last}; {changes} in {batches}"

    def _show_in_notebook(self, end: float | None) -> None:
        notebook = import_module("IPython.display")
        handle = notebook.display(notebook.HTML(self._repr_html_()), display_id=True)

        def update() -> None:
            shown = self._state()
            while self.running.active and (end is None or time.monotonic() < end):
                time.sleep(_REFRESH)
                if shown != (shown := self._state()):
                    handle.update(notebook.HTML(self._repr_html_()))
            handle.update(notebook.HTML(self._repr_html_()))

        threading.Thread(target=update, name="sash-live-answer", daemon=True).start()

    def _show_in_terminal(self, end: float | None) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console()
        try:
            with Live(console=console, auto_refresh=False, transient=False) as live:
                while self.running.active and (end is None or time.monotonic() < end):
                    if console.is_terminal:
                        live.update(Text(str(self)), refresh=True)
                    time.sleep(_REFRESH)
                live.update(Text(str(self)), refresh=True)
        except KeyboardInterrupt:
            return


def _in_utc(value: Any) -> Any:
    return value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) else value


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
