"""Snapshot and periodic queries over kept windows, by the names of the windows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sash.arguments import check_count
from sash.errors import OptionError, StoreError
from sash.window_store.execute import SnapshotExecution
from sash.window_store.groups import QueryGroups
from sash.window_store.live_window import LiveWindow
from sash.window_store.options import MemoryLimits, SnapshotOptions
from sash.window_store.periodic import PeriodicQuery
from sash.window_store.plan import SnapshotPlan, plan_snapshot
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.scheduling.runner import Runner
from sash.window_store.snapshot import Snapshot, ToSpark
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.sets import WindowSets
from sash.window_store.sub_windows import Scan, scan_locally


class WindowQueries:
    """The kept windows that this process knows, and the runner of its queries over them.

    `scans` are the scans for the values of the `reads` option, by priority of the query. `streams` are the names of all
    registered streams, for error messages.
    """

    def __init__(
        self,
        parallel: int = 2,
        capacity: int = 200,
        to_spark: ToSpark | None = None,
        streams: Collection[str] = (),
        limits: MemoryLimits | None = None,
    ) -> None:
        self._limits = limits or MemoryLimits()
        self._groups = QueryGroups(self._limits.shared)
        self.scans: dict[str, Callable[[int], Scan]] = {"local": lambda _: scan_locally}
        self._parallel, self._capacity = parallel, capacity
        self._guard = threading.Lock()
        self._runner: Runner | None = None
        self._windows: dict[str, LiveWindow] = {}
        self._periodic: list[PeriodicQuery] = []
        self._to_spark = to_spark
        self._streams = streams

    @property
    def runner(self) -> Runner:
        """The runner of the queries. Its threads start with the first query."""
        with self._guard:
            if self._runner is None:
                self._runner = Runner(self._parallel, self._capacity, memory=self._limits.suspended)
            return self._runner

    @property
    def limits(self) -> MemoryLimits:
        """The bytes that queries may take."""
        return self._limits

    @limits.setter
    def limits(self, limits: MemoryLimits) -> None:
        self._limits = limits
        self._groups.limit = limits.shared
        if self._runner is not None:
            self._runner.memory = limits.suspended

    def window(self, name: str) -> LiveWindow | None:
        """The window of this name, as it is now."""
        self._follow_sets()
        return self._windows.get(name.lower())

    def reads(self, name: str) -> list[dict[str, Any]]:
        """The queries over a window that run or wait, in their order."""
        live = self._windows.get(name.lower())
        return [] if live is None or self._runner is None else self._runner.reads(live.scheduler)

    def groups(self, name: str | None = None) -> list[dict[str, Any]]:
        """The groups of queries that share their scans, of all windows or of one: queries, scans, and reads shared."""
        found = self._groups.metrics()
        return [group for group in found if name is None or group["window"].lower() == name.lower()]

    def submit(self, sql: str | Sequence[str], options: SnapshotOptions) -> SnapshotExecution:
        """Start a query, or several that differ only in their windows, in one pass. `result` waits for the answers."""
        return SnapshotExecution(self.plan(sql, options), self.runner, self._to_spark)

    def periodic(
        self,
        sql: str | Sequence[str],
        options: SnapshotOptions,
        callback: Callable[[list[Snapshot]], None] | None = None,
        queue: int = 16,
    ) -> PeriodicQuery:
        """Execute a query now and after every `options.every` window updates, until it is stopped."""
        check_count("queue", queue)
        plan = self.plan(sql, options)
        again = partial(self.plan, sql, options)
        query = PeriodicQuery(plan, self.runner, callback, queue, self._to_spark, again)
        self._periodic.append(query)
        return query

    def plan(self, sql: str | Sequence[str], options: SnapshotOptions) -> SnapshotPlan:
        """Plan queries without executing them."""
        texts = [sql] if isinstance(sql, str) or not isinstance(sql, Sequence) else list(sql)
        if not texts:
            raise OptionError("there is no query to answer: pass one, or several in a list")
        self._follow_sets()
        scan = self.scans.get(options.reads)
        if scan is None:
            raise OptionError(f"reads={options.reads!r} needs a Spark session: use reads='local', or engine.snapshot")
        return plan_snapshot(
            texts, options, self._windows, scan(options.priority), self._streams, self._groups, self._limits
        )

    def attach(self, name: str, root: Path, recorder: Recorder | None = None) -> LiveWindow:
        """Make an existing store available under this name. It may have a writer in another process."""
        live = LiveWindow(root, recorder)
        self._check_free(name)
        self._windows[name.lower()] = live
        return live

    def write(self, root: Path, layout: StoreLayout, recorder: Recorder | None = None) -> WindowSets:
        """Open a store for writing, and make it available under its layout's name."""
        self._check_free(layout.name)
        writer = WindowSets(root, layout)
        writer.run_update = self.attach(layout.name, root, recorder).scheduler.update

        def switched() -> None:
            self._follow_sets()
            writer.run_update = self._windows[layout.name.lower()].scheduler.update

        writer.on_switch = switched
        writer.check = self._check_sub_windows
        return writer

    def _check_sub_windows(self, layout: StoreLayout) -> None:
        for query in self._periodic:
            query.check_sub_windows(layout.name, layout.count)

    def _follow_sets(self) -> None:
        """Read the sets of sub-windows that have replaced others."""
        with self._guard:
            for name, live in list(self._windows.items()):
                if live.replaced:
                    self._windows[name] = live.following()

    def detach(self, name: str) -> None:
        """Make a window unavailable. Its store stays."""
        self._windows.pop(name.lower(), None)

    def close(self) -> None:
        """Stop the periodic queries and the runner."""
        for periodic in self._periodic:
            periodic.stop()
        self._periodic.clear()
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _check_free(self, name: str) -> None:
        if name.lower() in self._windows:
            raise StoreError(f"{name} is already kept: stop keeping it first, or use another name")
