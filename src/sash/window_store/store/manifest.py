"""The manifest of a window store: the immutable files that make up the window. Replacing it is a window update.

A window is a circular array of n sub-windows. Update j writes sub-window j, which replaces sub-window j - n, so the
window after update j consists of the sub-windows j - n + 1 to j (paper 2, 2.1 and 2.3). In the kept result of a query
an update also inserts rows into existing sub-windows (4.3). These rows are in the update's own file, which is kept as
long as any of those sub-windows.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from sash.time import BEGINNING
from sash.window_store.store.files import read_table, write_bytes

_MANIFEST, _ROWS = "manifest.json", "rows"


@dataclass(frozen=True)
class Slice:
    """Consecutive rows of a file."""

    file: str
    first: int
    count: int

    def read(self, root: Path) -> pa.Table:
        """Read the rows."""
        return read_table(root / _ROWS / self.file).slice(self.first, self.count)

    def summaries(self, root: Path) -> Path:
        """The directory with the summaries of the file's rows."""
        return root / "summaries" / self.file


@dataclass(frozen=True)
class SubWindow:
    """A sub-window and the update that wrote it: an immutable file whose rows have start <= ts < end, ordered by ts.

    The update and its sub-window have the same `number`. In a window by rows, `start` and `end` are the time of the
    first row and the instant after the last one. `swapped` is the wall-clock time of the update, in seconds. `inserts`
    are the rows for older sub-windows of a result, each as (number of the sub-window, first row in the file, row count).
    """

    number: int
    file: str
    rows: int
    start: int
    end: int
    swapped: float = 0.0
    inserts: tuple[tuple[int, int, int], ...] = ()

    @property
    def own(self) -> Slice:
        """The rows of the sub-window itself."""
        return Slice(self.file, 0, self.rows)

    @property
    def inserted(self) -> dict[int, Slice]:
        """The rows that the update inserted into older sub-windows, by number."""
        return {number: Slice(self.file, first, count) for number, first, count in self.inserts}


@dataclass(frozen=True)
class Manifest:
    """One state of the store.

    `live` is the window, oldest sub-window first; `expired` are replaced sub-windows that readers may still need.
    `pending` are files of rows whose sub-window is still open. `batch` is the last micro-batch applied completely. If
    the next one was interrupted, `made` is the number of its updates that are done, and `reached` the end of the window
    before them.
    """

    live: tuple[SubWindow, ...] = ()
    expired: tuple[SubWindow, ...] = ()
    pending: tuple[str, ...] = ()
    clock: int = BEGINNING
    batch: int = -1
    made: int = 0
    reached: int = BEGINNING
    updates: int = 0
    late: int = 0

    def find(self, number: int) -> SubWindow | None:
        """A sub-window that is live, or expired and still kept."""
        return next((part for part in (*reversed(self.live), *self.expired) if part.number == number), None)

    def slices(self, number: int, as_of: int) -> list[Slice]:
        """A sub-window as of an update: its own rows, then the rows inserted since."""
        parts = {part.number: part for part in (*self.expired, *self.live) if number <= part.number <= as_of}
        found = [parts.pop(number).own] if number in parts else []
        inserted = (parts[update].inserted.get(number) for update in sorted(parts))
        return [*found, *(rows for rows in inserted if rows is not None)]

    def advance(self, part: SubWindow, count: int) -> Manifest:
        """The state after one update of a window of `count` sub-windows: a full window loses its oldest one."""
        live = (*self.live, part)
        out = max(0, len(live) - count)
        return replace(
            self, live=live[out:], expired=(*self.expired, *live[:out]), updates=part.number + 1, made=self.made + 1
        )

    @property
    def files(self) -> frozenset[str]:
        """All files of rows that the manifest refers to."""
        return frozenset((*(s.file for s in (*self.live, *self.expired)), *self.pending))

    def progress(self) -> dict[str, int | None]:
        """The last batch applied, the window updates so far, the watermark, late rows, and the sub-windows with their rows."""
        return {
            "batch": None if self.batch < 0 else self.batch,
            "updates": self.updates,
            "watermark": None if self.clock == BEGINNING else self.clock,
            "late": self.late,
            "sub_windows": len(self.live),
            "rows": sum(part.rows for part in self.live),
        }

    def save(self, root: Path) -> None:
        """Replace the current manifest. This commits a window update."""
        write_bytes(root / _MANIFEST, json.dumps(asdict(self)).encode())

    @staticmethod
    def load(root: Path) -> Manifest:
        """Read the current state of the store."""
        try:
            found = json.loads((root / _MANIFEST).read_bytes())
        except FileNotFoundError:
            return Manifest()
        for name in ("live", "expired"):
            found[name] = tuple(
                SubWindow(**{**part, "inserts": tuple(map(tuple, part["inserts"]))}) for part in found[name]
            )
        found["pending"] = tuple(found["pending"])
        return Manifest(**found)


@dataclass
class ManifestCache:
    """Reads the manifest again only after it was replaced."""

    root: Path
    _seen: tuple[int, int] | None = field(default=None, init=False)
    _manifest: Manifest = field(default_factory=Manifest, init=False)

    def latest(self) -> Manifest:
        """The current state of the store."""
        try:
            status = (self.root / _MANIFEST).stat()
        except FileNotFoundError:
            return Manifest()
        mark = (status.st_ino, status.st_mtime_ns)
        if mark != self._seen:
            self._manifest = Manifest.load(self.root)
            self._seen = mark
        return self._manifest
