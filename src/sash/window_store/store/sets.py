"""Sets of sub-windows: the length of the sub-windows of a kept window can be changed while it runs (paper 2, 1).

All sub-windows of a set have the same length, so a new length needs a new set. Both are maintained until the new one covers
the whole window ("rolls over"); until then queries read the old one. A set is a store of its own, in the folder of the
window or in a folder `set-N` below it, and `sets.json` names them. Replacing that file is the switch.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sash.arguments import shown
from sash.errors import OptionError, StoreError
from sash.private_folders import make_private
from sash.time import BEGINNING
from sash.window_store.store.files import write_bytes, write_table
from sash.window_store.store.layout import LAYOUT_FILE, StoreLayout, layout_of
from sash.window_store.store.locks import is_leased
from sash.window_store.store.manifest import Manifest
from sash.window_store.store.tables import times
from sash.window_store.store.writer import UpdateRunner, WindowWriter

_SETS = "sets.json"
_HOME = "."


@dataclass(frozen=True)
class SetNames:
    """The folders, below that of the window, of the set that queries read and of the one that will replace it."""

    current: str = _HOME
    following: str | None = None
    made: int = 0

    @staticmethod
    def load(home: Path) -> SetNames:
        """Read the names. A window whose length never changed has one set, in its own folder."""
        try:
            return SetNames(**json.loads((home / _SETS).read_bytes()))
        except FileNotFoundError:
            return SetNames()
        except OSError as problem:
            raise StoreError(f"the window store in {shown(str(home))} cannot be read: {problem.strerror}") from None

    def save(self, home: Path) -> None:
        """Replace the names in one atomic step."""
        write_bytes(home / _SETS, json.dumps(asdict(self)).encode())


def current_set(home: Path) -> Path:
    """The folder of the set that queries read."""
    return home / SetNames.load(home).current


class WindowSets:
    """The writer of a kept window: of one set or, after `change`, of two until the new one covers the window.

    `check` may refuse a change. `on_switch` is called when queries are to read another set, whose writer then needs its
    `run_update`.
    """

    def __init__(self, home: Path, layout: StoreLayout) -> None:
        make_private(home)
        self._home = home
        self.on_switch: Callable[[], None] = lambda: None
        self.check: Callable[[StoreLayout], None] = lambda _: None
        self._lock = threading.RLock()
        self._names = SetNames.load(home)
        self._old: list[Path] = []
        root = home / self._names.current
        found = StoreLayout.load(root) if (root / LAYOUT_FILE).exists() else None
        changes = found is not None and _is_resized(found, layout)
        known = replace(layout, length=found.length, count=found.count) if found is not None and changes else layout
        self._current = WindowWriter(root, known)
        self._following: WindowWriter | None = None
        self._wanted: StoreLayout | None = layout if changes else None
        try:
            self._resume()
        except BaseException:
            self.close()
            raise

    @property
    def home(self) -> Path:
        """The folder of the store, in which there is a set of sub-windows for every length that they have had."""
        return self._home

    @property
    def root(self) -> Path:
        """The folder of the set that queries read."""
        return self._home / self._names.current

    @property
    def layout(self) -> StoreLayout:
        """The layout of the set that queries read."""
        return self._current.layout

    @property
    def manifest(self) -> Manifest:
        """The state of the set that queries read."""
        return self._current.manifest

    @property
    def run_update(self) -> UpdateRunner:
        """Runs the updates of the set that queries read."""
        return self._current.run_update

    @run_update.setter
    def run_update(self, run: UpdateRunner) -> None:
        self._current.run_update = run

    def change_every(self, every: str | int) -> None:
        """Change the length of the sub-windows: a duration or, in a window by rows, a number of rows."""
        known = self.layout
        whole = known.count * known.length
        window = whole if known.kind == "rows" else f"{whole} microseconds"
        made = layout_of(known.name, known.schema, known.time, window, every, known.retain)
        self.change(replace(known, length=made.length, count=made.count))

    def change(self, layout: StoreLayout) -> None:
        """Change the length of the sub-windows; the length of the window stays."""
        with self._lock:
            if layout.kind == "result":
                raise StoreError(
                    f"the sub-windows of {layout.name} hold the answer of a query by expiration time, so their length cannot "
                    "be changed: keep the answer under another name, with the new length"
                )
            if not _is_resized(self.layout, layout) and layout != self.layout:
                raise OptionError(
                    f"only the length of the sub-windows of {layout.name} can be changed while it is kept, not the length of "
                    "the window: stop to keep it, and keep it in another path"
                )
            self.check(layout)
            self._abandon()
            self._wanted = None if layout == self.layout else layout
            self._begin()

    def apply(self, batch: int, rows: pa.Table, clock: int) -> int:
        """Apply a micro-batch to the sets; returns the number of window updates that queries see."""
        with self._lock:
            self._discard()
            following = self._following
            # The old set stands still once the new one covers the window, until that is as far.
            made = 0 if following is not None and _covers(following) else self._current.apply(batch, rows, clock)
            if following is not None:
                following.apply(batch, rows, clock)
                if _covers(following) and following.manifest.live[-1].end >= self._end:
                    self._switch(following)
            self._begin()
            return made

    def progress(self) -> dict[str, Any]:
        """What the manifest tells and, while the length changes, how much of the window the new set covers."""
        following = self._following
        if following is None:
            return self.manifest.progress()
        changing = {
            "every": following.layout.unit,
            "sub_windows": len(following.manifest.live),
            "of": following.layout.count,
        }
        return {**self.manifest.progress(), "changing": changing}

    def close(self) -> None:
        """Allow another writer."""
        with self._lock:
            self._current.close()
            if self._following is not None:
                self._following.close()
                self._following = None

    @property
    def _end(self) -> int:
        live = self.manifest.live
        return live[-1].end if live else BEGINNING

    def _resume(self) -> None:
        """Go on with a change that an earlier writer began, if it is still wanted."""
        name = self._names.following
        if name is not None:
            found = StoreLayout.load(self._home / name) if (self._home / name / LAYOUT_FILE).exists() else None
            if found is not None and self._wanted is not None and found.length == self._wanted.length:
                self._following = WindowWriter(self._home / name, self._wanted)
                return
            self._abandon()
        self._begin()

    def _begin(self) -> None:
        """Begin a new set, between two batches: rows that are still to come, or wait for their sub-window, belong to it."""
        before, wanted = self.manifest, self._wanted
        if wanted is None or self._following is not None or before.made:
            return
        names = replace(self._names, following=f"set-{self._names.made + 1}", made=self._names.made + 1)
        root = self._home / str(names.following)
        shutil.rmtree(root, ignore_errors=True)
        make_private(root / "rows")
        wanted.save(root)
        waiting, reached = self._current.waiting, BEGINNING
        if wanted.kind == "time" and before.clock != BEGINNING:
            reached = -(-before.clock // wanted.length) * wanted.length
            waiting = waiting.filter(pa.array(np.asarray(times(waiting) >= reached)))
        pending: tuple[str, ...] = ()
        if waiting.num_rows:
            pending = ("waiting.arrow",)
            write_table(root / "rows" / pending[0], waiting)
        Manifest(pending=pending, clock=before.clock, batch=before.batch, reached=reached).save(root)
        names.save(self._home)
        self._names = names
        self._following = WindowWriter(root, wanted)

    def _switch(self, following: WindowWriter) -> None:
        old, root = self._current, self.root
        self._names = replace(self._names, current=str(self._names.following), following=None)
        self._names.save(self._home)
        self._current, self._following, self._wanted = following, None, None
        self.on_switch()
        old.close()
        self._old.append(root)

    def _abandon(self) -> None:
        """Give up the new set."""
        name = self._names.following
        if self._following is not None:
            self._following.close()
            self._following = None
        if name is not None:
            self._names = replace(self._names, following=None)
            self._names.save(self._home)
            shutil.rmtree(self._home / name, ignore_errors=True)

    def _discard(self) -> None:
        """Delete replaced sets that no query reads any more."""
        for root in [root for root in self._old if not is_leased(root)]:
            self._old.remove(root)
            for part in ("rows", "summaries", "leases"):
                shutil.rmtree(root / part, ignore_errors=True)
            for file in ("manifest.json", LAYOUT_FILE):
                (root / file).unlink(missing_ok=True)


def _is_resized(before: StoreLayout, after: StoreLayout) -> bool:
    """Whether only the length of the sub-windows differs, in a window of the same length."""
    return (
        before.kind == after.kind != "result"
        and before.length != after.length
        and before.length * before.count == after.length * after.count
    )


def _covers(writer: WindowWriter) -> bool:
    """Whether the set covers the window."""
    return len(writer.manifest.live) == writer.layout.count
