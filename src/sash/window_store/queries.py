"""Snapshot and periodic queries: from SQL over names of kept windows to answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sash.errors import StoreError
from sash.window_store.access import Access, choose
from sash.window_store.asked import asked
from sash.window_store.asking import Execution, Question
from sash.window_store.live import LiveWindow
from sash.window_store.manifest import Layout
from sash.window_store.periodic import Periodic
from sash.window_store.reading import Scan, scan_here
from sash.window_store.scheduling.levels import level
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.scheduling.runner import Runner
from sash.window_store.scheduling.running import Running
from sash.window_store.shape import Shape
from sash.window_store.snapshot import Snapshot, ToSpark, snapshots
from sash.window_store.spans import Span
from sash.window_store.writer import WindowWriter

Queries = str | Sequence[str]


@dataclass(frozen=True)
class Asked:
    """A snapshot query that has been asked and not yet answered."""

    execution: Execution
    running: Running
    explain: str
    isolation: str
    to_spark: ToSpark | None

    def result(self) -> list[Snapshot]:
        """Wait for the answers, one per query; raises what ended the query instead."""
        try:
            answer = self.running.result()
            outcome = self.execution.outcome(answer)
            assert outcome is not None, "a query that keeps nothing has nothing to ask again"
            return snapshots(self.execution, answer, outcome, self.explain, self.isolation, time.time(), self.to_spark)
        finally:
            self.execution.release()

    def cancel(self) -> None:
        """End it, from any thread: `result` raises a CancelledError. Nothing happens if it has been answered."""
        self.running.cancel()


class WindowQueries:
    """The kept windows that this process knows, and the runner of its queries over them.

    `scans` are the ways to read rows, by name and for a priority: "local", and "spark" where there is a session.
    """

    def __init__(self, parallel: int = 2, capacity: int = 200, to_spark: ToSpark | None = None) -> None:
        self.scans: dict[str, Callable[[int], Scan]] = {"local": lambda _: scan_here}
        self._parallel, self._capacity = parallel, capacity
        self._guard = threading.Lock()
        self._runner: Runner | None = None
        self._windows: dict[str, LiveWindow] = {}
        self._periodic: list[Periodic] = []
        self._to_spark = to_spark

    @property
    def names(self) -> tuple[str, ...]:
        """The windows that can be asked."""
        return tuple(window.layout.name for window in self._windows.values())

    @property
    def runner(self) -> Runner:
        """What executes the queries; its threads start with the first one."""
        with self._guard:
            if self._runner is None:
                self._runner = Runner(self._parallel, self._capacity)
            return self._runner

    def attach(self, name: str, root: Path, recorder: Recorder | None = None) -> LiveWindow:
        """Ask the store in that directory under this name; somebody else writes it, or nobody."""
        return self._add(name, LiveWindow(root, recorder))

    def write(self, root: Path, layout: Layout, recorder: Recorder | None = None) -> WindowWriter:
        """Ask a store under its layout's name, and write it."""
        self._free(layout.name)
        live, writer = LiveWindow.written(root, layout, recorder)
        self._add(layout.name, live)
        return writer

    def window(self, name: str) -> LiveWindow:
        """A window by name."""
        found = self._windows.get(name.lower())
        if found is None:
            raise StoreError(f"{name} is not kept: engine.keep({name!r}, window=..., every=...) keeps it")
        return found

    def forget(self, name: str) -> None:
        """Ask it no more; the store stays."""
        self._windows.pop(name.lower(), None)

    def snapshot(
        self,
        sql: Queries,
        isolation: str = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: str = "auto",
        reads: str = "local",
        registered: Collection[str] = (),
    ) -> list[Snapshot]:
        """Answer now: one query, or several that differ only in their windows, in one pass."""
        return self.ask(sql, isolation, priority, timeout, access, reads, registered).result()

    def ask(
        self,
        sql: Queries,
        isolation: str = "latest",
        priority: int = 10,
        timeout: float | None = None,
        access: str = "auto",
        reads: str = "local",
        registered: Collection[str] = (),
    ) -> Asked:
        """Begin to answer; whoever asks waits for `result`, or cancels."""
        question, explain = self.question(sql, None, priority, access, reads, registered)
        name = level(isolation).name
        execution = Execution(question)
        running = execution.submit(self.runner, name, priority, timeout)
        return Asked(execution, running, f"{explain}\nisolation {name}, priority {priority}", name, self._to_spark)

    def periodic(
        self,
        sql: Queries,
        every: int,
        priority: int = 0,
        isolation: str = "latest",
        access: str = "auto",
        reads: str = "local",
        callback: Callable[[list[Snapshot]], None] | None = None,
        queue: int = 16,
        registered: Collection[str] = (),
    ) -> Periodic:
        """Answer now and after every `every` window updates, until stopped."""
        question, explain = self.question(sql, every, priority, access, reads, registered)
        if every < 1:
            raise StoreError(f"a periodic query is executed every 1 or more window updates, not {every}")
        text = f"{explain}\nevery {every} updates, isolation {level(isolation).name}, priority {priority}"
        found = Periodic(
            question, self.runner, every, level(isolation).name, priority, text, callback, queue, self._to_spark
        )
        self._periodic.append(found)
        return found

    def question(
        self,
        sql: Queries,
        every: int | None = None,
        priority: int = 0,
        access: str = "auto",
        reads: str = "local",
        registered: Collection[str] = (),
    ) -> tuple[Question, str]:
        """The queries as one question, and the plan as text."""
        texts = [sql] if isinstance(sql, str) else list(sql)
        found = asked(texts, {name: window.layout for name, window in self._windows.items()}, registered)
        live, shapes, spans = self._windows[found.window], found.shapes, found.spans
        scan = self.scans.get(reads)
        if scan is None:
            raise StoreError(f"there is no way {reads!r} to read: choose {', '.join(self.scans)}")
        chosen = choose(live, shapes[0].core, spans, every, access)
        question = Question(live, shapes, spans, chosen, scan(priority))
        return question, _explain(texts, live, shapes, spans, chosen, reads)

    def close(self) -> None:
        """Stop the periodic queries and the runner."""
        for periodic in self._periodic:
            periodic.stop()
        self._periodic.clear()
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _free(self, name: str) -> None:
        if name.lower() in self._windows:
            raise StoreError(f"{name} is kept already: stop that first, or give it another name")

    def _add(self, name: str, live: LiveWindow) -> LiveWindow:
        self._free(name)
        self._windows[name.lower()] = live
        return live


def _explain(
    texts: Sequence[str], live: LiveWindow, shapes: Sequence[Shape], spans: Sequence[Span], access: Access, reads: str
) -> str:
    layout, core = live.layout, shapes[0].core
    unit = f"{layout.length} rows" if layout.kind == "rows" else f"{layout.length / 1e6:g} s"
    lines = [" ".join(text.split()) for text in texts]
    lines.append(f"window {layout.name}: {layout.count} sub-windows of {unit}, retain {layout.retain}")
    for span in spans:
        cut = "" if span.whole else ", the ends cut row by row"
        lines.append(f"reads {span.length} of {layout.count} sub-windows{cut}, {reads}ly" if reads == "local" else
                     f"reads {span.length} of {layout.count} sub-windows{cut}, as {reads.capitalize()} jobs")  # fmt: skip
    lines.append(f"access path {access.path}: {access.reason}")
    lines += [f"  {summary.identity}{' (subtractable)' if summary.subtractable else ''}" for summary in core.summaries]
    lines += [f"  {name}: {error}" for name, error in core.errors.items()]
    return "\n".join(lines)
