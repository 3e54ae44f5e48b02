"""The windows that a job keeps, read from their files by the console's process, and snapshots over them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from sash.console.values import rows_of
from sash.errors import CatalogError
from sash.plan.types import type_name
from sash.time import BEGINNING
from sash.window_store.live_window import LiveWindow
from sash.window_store.options import IsolationLevel, SnapshotOptions
from sash.window_store.queries import WindowQueries

Values = dict[str, Any]

_PARALLEL, _CAPACITY = 1, 8
_MOST_SECONDS = 30.0


class StoreWindows:
    """The windows of a job by name. May be used from several threads."""

    def __init__(self) -> None:
        self._queries = WindowQueries(_PARALLEL, _CAPACITY)
        self._paths: dict[str, str] = {}
        self._lock = threading.Lock()
        self._completed: dict[str, int] = {}
        self._aborts: dict[str, int] = {}

    def close(self) -> None:
        """Cancel the snapshots."""
        self._queries.close()

    def listed(self, windows: Mapping[str, Values]) -> list[Values]:
        """The windows with their sub-windows, and the reads of the job and of this process."""
        self._attach(windows)
        found = []
        for name, facts in windows.items():
            live = self._queries.window(name)
            if live is not None:
                found.append(self._window(name, facts, live))
        return found

    def catalog(self, windows: Mapping[str, Values]) -> list[Values]:
        """The windows with their columns."""
        self._attach(windows)
        listed = ((name, self._queries.window(name)) for name in windows)
        return [
            {
                "name": name,
                "kind": "window",
                "columns": [{"name": field.name, "type": type_name(field.dtype)} for field in live.layout.schema],
            }
            for name, live in listed
            if live is not None
        ]

    def snapshot(self, windows: Mapping[str, Values], sql: str, isolation: str, timeout: float, limit: int) -> Values:
        """The answer of a query over a window as of its last update, at most so many rows of it."""
        self._attach(windows)
        if not windows:
            raise CatalogError("the job keeps no window, and a snapshot reads one: KEEP makes it")
        options = SnapshotOptions(cast("IsolationLevel", isolation), timeout=min(timeout, _MOST_SECONDS))
        begun = time.monotonic()
        execution = self._queries.submit(sql, options)
        name = execution.plan.window.layout.name
        found = execution.result()[0]
        with self._lock:
            self._completed[name] = self._completed.get(name, 0) + 1
            self._aborts[name] = self._aborts.get(name, 0) + found.restarts
        return {
            "columns": [{"name": field.name, "type": type_name(field.type)} for field in found.table.schema],
            "rows": rows_of(found.table.slice(0, limit)),
            "counts": [1] * min(limit, found.table.num_rows),
            "as_of": found.as_of,
            "watermark": found.as_of,
            "total": found.table.num_rows,
            "known": True,
            "reason": None,
            "access": execution.plan.access.path,
            "read": {"sub-windows": found.sub_windows_read, "summaries": found.summaries_read},
            "seconds": round(time.monotonic() - begun, 4),
            "aborts": found.restarts,
        }

    def _attach(self, windows: Mapping[str, Values]) -> None:
        """Know exactly these windows."""
        with self._lock:
            paths = {name: facts["path"] for name, facts in windows.items()}
            for name, path in list(self._paths.items()):
                if paths.get(name) != path:
                    self._queries.detach(name)
                    del self._paths[name]
            for name, path in paths.items():
                if name not in self._paths and (Path(path)).is_dir():
                    self._queries.attach(name, Path(path))
                    self._paths[name] = path

    def _window(self, name: str, facts: Values, live: LiveWindow) -> Values:
        layout, now = live.layout, live.manifest
        by_rows, root = layout.kind == "rows", live.root
        last = now.live[-1] if now.live else None
        parts = [
            {
                "number": part.number,
                "begin": part.start,
                "end": part.end,
                "rows": part.rows,
                "bytes": _size(root / "rows" / part.file),
                "state": "full",
            }
            for part in now.live
        ]
        if parts:
            parts[-1]["state"] = "current"
        return {
            "name": name,
            "path": str(facts["path"]),
            "length": layout.length * layout.count,
            "every": layout.length,
            "unit": "rows" if by_rows else "us",
            "watermark": None if now.clock == BEGINNING else now.clock,
            "updates": now.updates,
            "due": None if last is None or by_rows else last.end + layout.length,
            "rows": sum(part.rows for part in now.live),
            "bytes": sum(part["bytes"] for part in parts),
            "late": now.late,
            "freshness_seconds": None if last is None else round(time.time() - last.swapped, 1),
            "sub_windows": parts,
            "reads": [*facts.get("reads", ()), *self._queries.reads(name)],
            "aborts": self._aborts.get(name, 0),
            "completed": self._completed.get(name, 0),
        }


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
