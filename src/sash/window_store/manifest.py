"""The manifest of a window store: which immutable files are the window now; replacing it is a window update.

A window is a circular array of n sub-windows. Update j makes sub-window j, which takes the place j mod n: the state of
the window after it is the sub-windows j - n + 1 to j (paper 2, 2.1 and 2.3). In the kept answer of a query an update
also inserts rows into sub-windows that are there (4.3): they stand in the update's own file, which lives as long as
any of these sub-windows.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from sash.errors import StoreError
from sash.plan.types import Field, Schema
from sash.time import BEGINNING
from sash.window_store.files import read_table, write_bytes

FORMAT = 2
TIME = "_ts"
SIGN = "_sign"
ENDS = "_ends"

_LAYOUT, _MANIFEST, _ROWS = "layout.json", "manifest.json", "rows"

Kind = Literal["time", "rows", "result"]


@dataclass(frozen=True)
class Layout:
    """What never changes about a store: whose rows they are, and how they are cut.

    `length` is a sub-window's, in microseconds for `time`, in rows for `rows`. A `result` is the answer of a query,
    brought up to date every `length` microseconds: its files have signed rows, and, with `ends`, the time at which each
    row is to expire. `retain` is how many replaced sub-windows stay for readers that have read them.
    """

    name: str
    schema: Schema
    time: str
    kind: Kind
    length: int
    count: int
    retain: int = 0
    ends: bool = False

    @property
    def arrow(self) -> pa.Schema:
        """The columns of a sub-window's file: the row's time in microseconds, in a result its sign and end, its columns."""
        signs = [pa.field(SIGN, pa.int8())] if self.kind == "result" else []
        ends = [pa.field(ENDS, pa.int64())] if self.ends else []
        return pa.schema([pa.field(TIME, pa.int64()), *signs, *ends, *((f.name, f.dtype) for f in self.schema)])

    def save(self, root: Path) -> None:
        """Write it, once."""
        written: dict[str, Any] = {**asdict(self), "format": FORMAT}
        written["schema"] = base64.b64encode(self.arrow.serialize().to_pybytes()).decode()
        write_bytes(root / _LAYOUT, json.dumps(written).encode())

    @staticmethod
    def load(root: Path) -> Layout:
        """That of an existing store."""
        try:
            found = json.loads((root / _LAYOUT).read_bytes())
        except FileNotFoundError:
            raise StoreError(
                f"there is no window store in {root}: keep a stream there first, with engine.keep(name, path=...)"
            ) from None
        if found.pop("format") != FORMAT:
            raise StoreError(f"the window store in {root} was written by another version: remove it and keep anew")
        arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"])))
        found["schema"] = tuple(Field(f.name, f.type) for f in arrow if f.name not in (TIME, SIGN, ENDS))
        return Layout(**found)


@dataclass(frozen=True)
class Slice:
    """Rows that stand together in a file."""

    file: str
    first: int
    count: int

    def read(self, root: Path) -> pa.Table:
        """The rows."""
        return read_table(root / _ROWS / self.file).slice(self.first, self.count)

    def summaries(self, root: Path) -> Path:
        """The directory of the summaries of all rows of the file."""
        return root / "summaries" / self.file


@dataclass(frozen=True)
class SubWindow:
    """One update: its immutable file, with the rows that make a sub-window, start <= ts < end, in order of ts.

    `number` is that of the update, and of the sub-window. In a window by rows, `start` and `end` are the time of the
    first row and the instant after the last one. `swapped` is the wall-clock time at which it came into the window, in
    seconds. `inserts` are the rows for older sub-windows of a result, (number, first row in the file, rows) each.
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
        """The rows that it came with."""
        return Slice(self.file, 0, self.rows)

    @property
    def inserted(self) -> dict[int, Slice]:
        """What its update put into older sub-windows, by number."""
        return {number: Slice(self.file, first, count) for number, first, count in self.inserts}

    def read(self, root: Path) -> pa.Table:
        """The rows that it came with."""
        return self.own.read(root)


@dataclass(frozen=True)
class Manifest:
    """One state of the store.

    `live` is the window, oldest first; `expired` are replaced sub-windows that still have a use. `pending` are files of
    rows whose sub-window is still open. `batch` is the last micro-batch taken in, whole; `made` says how many updates of
    the next one are done already, where that was interrupted, and `reached` where the window ended before them.
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

    @property
    def end(self) -> int:
        """Every row before this is in the window (or has been)."""
        return self.live[-1].end if self.live else BEGINNING

    def find(self, number: int) -> SubWindow | None:
        """A sub-window that is live or still there."""
        return next((part for part in (*reversed(self.live), *self.expired) if part.number == number), None)

    def slices(self, number: int, as_of: int) -> list[Slice]:
        """What a sub-window consists of as of an update: the rows that it came with, and what was inserted since."""
        parts = {part.number: part for part in (*self.expired, *self.live) if number <= part.number <= as_of}
        found = [parts.pop(number).own] if number in parts else []
        inserted = (parts[update].inserted.get(number) for update in sorted(parts))
        return [*found, *(rows for rows in inserted if rows is not None)]

    @property
    def files(self) -> frozenset[str]:
        """Every file of rows that it speaks of."""
        return frozenset((*(s.file for s in (*self.live, *self.expired)), *self.pending))

    def save(self, root: Path) -> None:
        """Take the place of the manifest that is there: this is the commit of a window update."""
        write_bytes(root / _MANIFEST, json.dumps(asdict(self)).encode())

    @staticmethod
    def load(root: Path) -> Manifest:
        """The store's state now."""
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


def pushed(manifest: Manifest, layout: Layout, part: SubWindow) -> Manifest:
    """The state after one update: the sub-window comes in, and where the window is full the oldest one goes out."""
    live = (*manifest.live, part)
    out = max(0, len(live) - layout.count)
    return replace(
        manifest,
        live=live[out:],
        expired=(*manifest.expired, *live[:out]),
        updates=part.number + 1,
        made=manifest.made + 1,
    )


@dataclass
class Watch:
    """Reads the manifest again only if it has been replaced."""

    root: Path
    _seen: tuple[int, int] | None = field(default=None, init=False)
    _manifest: Manifest = field(default_factory=Manifest, init=False)

    def latest(self) -> Manifest:
        """The store's state now."""
        try:
            status = (self.root / _MANIFEST).stat()
        except FileNotFoundError:
            return Manifest()
        mark = (status.st_ino, status.st_mtime_ns)
        if mark != self._seen:
            self._manifest = Manifest.load(self.root)
            self._seen = mark
        return self._manifest
