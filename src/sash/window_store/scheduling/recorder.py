"""Records the operations of a run as a history, which `sash.testing.histories.classify` can check."""

from __future__ import annotations

import threading
from collections.abc import Iterable


class Recorder:
    """Operations in the order of their effect, in the notation of `sash.testing.histories`. Thread-safe."""

    def __init__(self) -> None:
        self._operations: list[str] = []
        self._lengths: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def history(self) -> str:
        """The history so far."""
        with self._lock:
            return " ".join(self._operations)

    @property
    def lengths(self) -> dict[str, int]:
        """The number of sub-windows that each committed query had to read."""
        with self._lock:
            return dict(self._lengths)

    def _record(self, *operations: str) -> None:
        with self._lock:
            self._operations += operations

    def read(self, query: str, sub_window: int, as_of: int, passed_up_to: int | None = None) -> None:
        """The query has read a sub-window as of an update, and received the rows inserted since."""
        self._record(f"r{query}[{sub_window}:{as_of}]")
        if passed_up_to is not None:
            self._record(f"p{query}[{sub_window}:{passed_up_to}]")

    def pass_on(self, query: str, sub_window: int) -> None:
        """The query received the rows that the last update inserted into a sub-window it had read."""
        self._record(f"p{query}[{sub_window}]")

    def undo(self, query: str, sub_window: int) -> None:
        """The query has undone its read of a sub-window."""
        self._record(f"u{query}[{sub_window}]")

    def commit(self, query: str, length: int) -> None:
        """The query has committed, over this many sub-windows."""
        with self._lock:
            self._operations.append(f"c{query}")
            self._lengths[query] = length

    def abort(self, query: str) -> None:
        """The query was aborted."""
        self._record(f"a{query}")

    def update(self, number: int, sub_window: int, inserted: Iterable[int] = ()) -> None:
        """A window update has replaced its sub-window, inserted into others, and committed."""
        self._record(f"w{number}[{sub_window}]", *(f"i{number}[{other}]" for other in inserted), f"c{number}")
