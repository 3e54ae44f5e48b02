"""Showing the story: as a picture that is redrawn in place, or as plain lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sash.cli.demo.moment import Act, Moment
from sash.cli.demo.picture import driver_state, picture, summary
from sash.cli.demo.readings import SECOND

_LINE_PERIOD, _WAITING_PERIOD = SECOND, 5 * SECOND
"""The least time between two plain lines about answers, and about waiting for one."""


class Show(ABC):
    """Shows the moments of the story while entered, and what stays on the screen of each act."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @abstractmethod
    def update(self, moment: Moment) -> None:
        """Show a moment."""

    def result(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(Text(text))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class PictureShow(Show):
    """A picture of the size of the terminal; results are printed above it."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._live = Live(console=console, auto_refresh=False)

    def update(self, moment: Moment) -> None:
        self._live.update(picture(moment, self._console.width, self._console.height), refresh=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, problem, trace)


class LineShow(Show):
    """A line for every act, note and batch (at most one a second), without control characters; some while there is none."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._act: Act | None = None
        self._note = ""
        self._batch = -1
        self._printed = 0

    def update(self, moment: Moment) -> None:
        if moment.act != self._act:
            self._act = moment.act
            self.result(f"Act {moment.act.number} of 3: {moment.act.title}. {moment.act.narration}")
        if moment.note != self._note:
            self._note = moment.note
            self.result(moment.note)
        batch = -1 if moment.answers is None else moment.answers.batch
        if moment.now >= self._printed + (_LINE_PERIOD if batch > self._batch else _WAITING_PERIOD):
            self._batch, self._printed = batch, moment.now
            driver = moment.drivers[-1]
            self.result("; ".join([*summary(moment), f"driver {driver.pid} {driver_state(driver, moment.now)}"]))

    def result(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
