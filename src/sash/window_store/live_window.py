"""A live window: a store as the queries of this process see it, with the scheduler of its queries and updates."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sash.errors import StoreError
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.scheduling.scheduler import Scheduler
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.locks import Lease, StoreLock
from sash.window_store.store.manifest import Manifest, ManifestCache, SubWindow
from sash.window_store.store.sets import current_set


class LiveWindow:
    """One store. A writer in this process runs its updates through the scheduler; updates of other processes are found
    in the manifest."""

    def __init__(self, home: Path, recorder: Recorder | None = None) -> None:
        self._home = home
        self.root = root = current_set(home)
        self.layout = StoreLayout.load(root)
        self._lock = StoreLock(root)
        self._cache = ManifestCache(root)
        count, latest, retain = self.layout.count, self.manifest.updates - 1, self.layout.retain
        self.scheduler = Scheduler(
            count, latest, retain=retain, recorder=recorder, lock=self._lock, observe=self._observe
        )
        self._requested: set[str] = set()
        self._guard = threading.Lock()

    @property
    def replaced(self) -> bool:
        """Whether queries are to read another set of sub-windows, of another length."""
        return current_set(self._home) != self.root

    def following(self) -> LiveWindow:
        """The window as it is now: this one, or the set that has replaced it."""
        return LiveWindow(self._home) if self.replaced else self

    @property
    def manifest(self) -> Manifest:
        """The current state of the store."""
        return self._cache.latest()

    def lease(self, oldest: int | None = None) -> Lease:
        """Keep the sub-windows in the window, and those from number `oldest` on, until the lease is released."""
        with self._lock.shared():
            now = self.manifest
            low = now.live[0].number if now.live else 0
            return Lease(self.root, low if oldest is None else min(low, oldest))

    def part(self, number: int) -> SubWindow:
        """A sub-window that is in the window or leased."""
        found = self.manifest.find(number)
        if found is None:
            raise StoreError(f"sub-window {number} of {self.layout.name} was deleted: run the query again")
        return found

    def requested_before(self, identities: Sequence[str]) -> bool:
        """Whether earlier queries used all of these summaries. Records that this one does."""
        with self._guard:
            known = self._requested.issuperset(identities)
            self._requested.update(identities)
            return known

    def _observe(self, latest: int) -> Sequence[Mapping[int, Any]]:
        now = self.manifest
        made = {part.number: part.inserted for part in (*now.expired, *now.live)}
        return [made.get(number, {}) for number in range(latest + 1, now.updates)]
