"""A live window: a store, as the queries of this process see it, and the scheduler that keeps them and its updates apart."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sash.errors import StoreError
from sash.window_store.leases import Lease
from sash.window_store.locks import StoreLock
from sash.window_store.manifest import Layout, Manifest, SubWindow, Watch
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.scheduling.scheduler import Scheduler
from sash.window_store.writer import WindowWriter


class LiveWindow:
    """One store. Updates are heard from the writer, where it is in this process, and seen in the manifest otherwise."""

    def __init__(self, root: Path, recorder: Recorder | None = None) -> None:
        self.root = root
        self.layout = Layout.load(root)
        self.lock = StoreLock(root)
        self._watch = Watch(root)
        self.scheduler = Scheduler(
            self.layout.count,
            self.manifest.updates - 1,
            retain=self.layout.retain,
            recorder=recorder,
            lock=self.lock,
            observe=self._observe,
        )
        self.asked: set[str] = set()
        self._guard = threading.Lock()

    @staticmethod
    def written(root: Path, layout: Layout, recorder: Recorder | None = None) -> tuple[LiveWindow, WindowWriter]:
        """The window and its writer, both in this process."""
        writer = WindowWriter(root, layout)
        live = LiveWindow(root, recorder)
        writer.updates_through(live.scheduler.update)
        return live, writer

    @property
    def manifest(self) -> Manifest:
        """The state of the store now."""
        return self._watch.latest()

    def lease(self, oldest: int | None = None) -> Lease:
        """Keep what is in the window now, and from sub-window `oldest` on, until the lease is released."""
        with self.lock.shared():
            now = self.manifest
            low = now.live[0].number if now.live else 0
            return Lease(self.root, low if oldest is None else min(low, oldest))

    def part(self, number: int) -> SubWindow:
        """A sub-window that is in the window, or that a lease has kept."""
        found = self.manifest.find(number)
        if found is None:
            raise StoreError(f"sub-window {number} of {self.layout.name} is gone: ask again")
        return found

    def asked_before(self, identities: Sequence[str]) -> bool:
        """Whether all of these summaries have been asked for before; from now on they have."""
        with self._guard:
            known = self.asked.issuperset(identities)
            self.asked.update(identities)
            return known

    def _observe(self, latest: int) -> Sequence[Mapping[int, Any]]:
        now = self.manifest
        made = {part.number: part.inserted for part in (*now.expired, *now.live)}
        return [made.get(number, {}) for number in range(latest + 1, now.updates)]
