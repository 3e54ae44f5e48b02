"""Access paths and the choice between them (paper 2, 2.1 and 2.2).

| path | reads |
|---|---|
| WS, window scan | the rows of every sub-window of the query's window |
| SS, summary scan | the summary of every sub-window; builds and stores missing ones |
| IS, incremental scan | the rows of the sub-windows added or expired since the last execution, whose state it keeps |
| ISS, incremental summary scan | the summaries of those sub-windows |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sash.errors import StoreError
from sash.sizes import size_text
from sash.window_store.live_window import LiveWindow
from sash.window_store.options import AccessOption, AccessPath
from sash.window_store.spans import Span
from sash.window_store.sub_windows import all_stored_bytes, has_summaries, stored_bytes
from sash.window_store.summaries.core import Core


@dataclass(frozen=True)
class AccessChoice:
    """The chosen access path and the reason."""

    path: AccessPath
    reason: str

    @property
    def incremental(self) -> bool:
        """Whether it continues from the state of the last execution."""
        return self.path in ("IS", "ISS")

    @property
    def summarized(self) -> bool:
        """Whether it reads summaries."""
        return self.path in ("SS", "ISS")


def choose_access(
    live: LiveWindow, core: Core, spans: Sequence[Span], every: int | None, wanted: AccessOption, limit: int = 1 << 62
) -> AccessChoice:
    """The access path of a query that is executed once, or every `every` updates; `wanted` is "auto" or a path.

    `limit` is the number of bytes that the summaries of the window, and the state that a periodic query keeps, may have
    (paper 2, 2.2). A query whose summaries do not fit scans rows; it continues from its own state if that fits.
    """
    if wanted != "auto":
        return _check_forced(core, spans, every, wanted)
    length = max(span.length for span in spans)
    known = live.requested_before([summary.identity for summary in core.summaries])
    if not core.summarized:
        return AccessChoice("WS", _summary_obstacle(core))
    if every is None and _mostly_stored(live, core, length):
        return AccessChoice("SS", "most summaries of its sub-windows are stored")
    need = MemoryNeed.of(live, core, length)
    fits = need.summaries <= limit
    if every is None:
        if not fits:
            return AccessChoice("WS", need.too_large(limit))
        if known:
            return AccessChoice("SS", "an earlier query used the same summaries: they are stored from now on")
        return AccessChoice("WS", "no summaries of its sub-windows are stored")
    if _incremental_obstacle(core, spans, every) is None and 2 * every < length and need.state <= limit:
        if (known or _mostly_stored(live, core, length)) and need.summaries + need.state <= limit:
            reason = f"subtractable, {2 * every} of {length} sub-windows change, and other queries use its summaries"
            return AccessChoice("ISS", reason)
        return AccessChoice("IS", f"subtractable, and {2 * every} of {length} sub-windows change between executions")
    if not fits:
        return AccessChoice("WS", need.too_large(limit))
    why = "its aggregates are not subtractable" if not core.subtractable else "most of its window changes in between"
    return AccessChoice("SS", f"{why}, and summaries are stored")


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes that the access paths need: all summaries of the window with those of this core, and the state of one query.

    The summaries of a sub-window are taken to be as large as the stored ones are on average, else as the rows of one are. The
    state of a query is at most the summaries of its window.
    """

    summaries: int
    state: int

    @staticmethod
    def of(live: LiveWindow, core: Core, length: int) -> MemoryNeed:
        """What a query over so many sub-windows needs."""
        parts = live.manifest.live
        size, stored = stored_bytes(live.root, [part.own for part in parts], core)
        if stored:
            each = size // stored
        else:
            each = max((int(part.own.read(live.root).nbytes) for part in parts[-1:]), default=0)
        missing = max(0, live.layout.count - stored)
        return MemoryNeed(all_stored_bytes(live.root) + missing * each, length * each)

    def too_large(self, limit: int) -> str:
        """Why summaries are not stored."""
        return f"with its summaries all would take about {size_text(self.summaries)}, more than the limit of {size_text(limit)}"


def _check_forced(core: Core, spans: Sequence[Span], every: int | None, path: AccessPath) -> AccessChoice:
    if path in ("IS", "ISS"):
        obstacle = _incremental_obstacle(core, spans, every)
        if obstacle is not None:
            raise StoreError(f"{path} does not apply: {obstacle}; use auto")
    if path in ("SS", "ISS") and not core.summarized:
        raise StoreError(f"{path} does not apply: {_summary_obstacle(core)}; use auto")
    return AccessChoice(path, "forced by the access option")


def _summary_obstacle(core: Core) -> str:
    """Why summaries cannot be stored."""
    if core.node is None:
        return "the answer consists of the rows, so there is nothing to summarize"
    return "rows of a query's answer may be retracted, and its aggregates are not subtractable"


def _incremental_obstacle(core: Core, spans: Sequence[Span], every: int | None) -> str | None:
    """Why an execution cannot continue from the state of the last one, if so."""
    if every is None:
        return "a snapshot is executed once"
    if len(spans) > 1:
        return "several windows are evaluated in one pass"
    if core.signed:
        return "the sub-windows of a query's answer change after they have been read"
    if not core.subtractable:
        return "its aggregates are not subtractable"
    return None if spans[0].whole else "its window does not consist of whole sub-windows"


def _mostly_stored(live: LiveWindow, core: Core, length: int) -> bool:
    """Whether a summary scan would have to build less than half of its summaries."""
    parts = live.manifest.live[-length:]
    return 2 * sum(has_summaries(live.root, part.own, core) for part in parts) > len(parts)
