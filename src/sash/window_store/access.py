"""Access paths and the choice between them (paper 2, 2.1 and 2.2).

| path | reads |
|---|---|
| WS, window scan | the rows of every sub-window of the query's window |
| SS, summary scan | the summary of every sub-window; makes those that are missing |
| IS, incremental scan | the rows of sub-windows that came or expired since the last execution, on top of its state |
| ISS, incremental summary scan | the summaries of those |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sash.errors import StoreError
from sash.window_store import summaries
from sash.window_store.core import Core
from sash.window_store.live import LiveWindow
from sash.window_store.spans import Span

Path = Literal["WS", "IS", "SS", "ISS"]
PATHS: tuple[Path, ...] = ("WS", "IS", "SS", "ISS")


@dataclass(frozen=True)
class Access:
    """The path that is taken, and why."""

    path: Path
    reason: str

    @property
    def incremental(self) -> bool:
        """Whether it keeps the state of the last execution."""
        return self.path in ("IS", "ISS")

    @property
    def summarized(self) -> bool:
        """Whether it reads summaries."""
        return self.path in ("SS", "ISS")


def choose(live: LiveWindow, core: Core, spans: Sequence[Span], every: int | None, wanted: str) -> Access:
    """The path for a query that is executed once, or every `every` updates; `wanted` is "auto" or a path by name."""
    if wanted != "auto":
        return _forced(core, spans, every, wanted)
    length = max(span.length for span in spans)
    known = live.asked_before([summary.identity for summary in core.summaries])
    steady = _incremental_obstacle(core, spans, every) is None
    if not core.summarized:
        return Access("WS", _unsummarized(core))
    if every is None:
        if _mostly_there(live, core, length):
            return Access("SS", "summaries of its sub-windows are there")
        if known:
            return Access("SS", "it has been asked before: from now on summaries are kept")
        return Access("WS", "no summaries of its sub-windows are there")
    if steady and 2 * every < length:
        if known or _mostly_there(live, core, length):
            return Access("ISS", f"subtractable, {2 * every} of {length} change, and its summaries serve others too")
        return Access("IS", f"subtractable, and {2 * every} of {length} sub-windows change between executions")
    why = "its aggregates cannot be taken off" if not core.subtractable else "most of its window changes in between"
    return Access("SS", f"{why}, and summaries are kept")


def _forced(core: Core, spans: Sequence[Span], every: int | None, wanted: str) -> Access:
    path = next((path for path in PATHS if path == wanted.upper()), None)
    if path is None:
        raise StoreError(f"there is no access path {wanted!r}: choose auto, {', '.join(PATHS)}")
    if path in ("IS", "ISS"):
        obstacle = _incremental_obstacle(core, spans, every)
        if obstacle is not None:
            raise StoreError(f"{path} does not apply: {obstacle}; use auto")
    if path in ("SS", "ISS") and not core.summarized:
        raise StoreError(f"{path} does not apply: {_unsummarized(core)}; use auto")
    return Access(path, "as asked for")


def _unsummarized(core: Core) -> str:
    if core.node is None:
        return "the answer is the rows themselves: there is nothing to summarize"
    return "rows of a query's answer may be taken back, and its aggregates cannot be taken off"


def _incremental_obstacle(core: Core, spans: Sequence[Span], every: int | None) -> str | None:
    """Why the state of the last execution cannot be carried on, if so."""
    if every is None:
        return "a snapshot is executed once"
    if len(spans) > 1:
        return "several windows are evaluated in one pass"
    if core.signed:
        return "the sub-windows of a query's answer change after they have been read"
    if not core.subtractable:
        return "its aggregates cannot be taken off"
    return None if spans[0].whole else "its window is not made of whole sub-windows"


def _mostly_there(live: LiveWindow, core: Core, length: int) -> bool:
    """Whether reading summaries means making only a few; the youngest is looked at last, it is the likeliest to lack."""
    parts = live.manifest.live[-length:]
    there = sum(all(summaries.exists(live.root, part.own, summary) for summary in core.summaries) for part in parts)
    return 2 * there > len(parts)
