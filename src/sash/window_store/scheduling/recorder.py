"""Records what really happened in a run, as a history that `history.classify` can judge."""

from __future__ import annotations

import threading
from collections.abc import Iterable


class Recorder:
    """Operations in the order in which they took effect, in the notation of `history.py`. Thread-safe."""

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
        """How many sub-windows each committed query was to read."""
        with self._lock:
            return dict(self._lengths)

    def _note(self, *operations: str) -> None:
        with self._lock:
            self._operations += operations

    def read(self, query: str, sub_window: int, as_of: int, passed_up_to: int | None = None) -> None:
        """The query has read a sub-window as of an update, and been passed what was inserted since."""
        self._note(f"r{query}[{sub_window}:{as_of}]")
        if passed_up_to is not None:
            self._note(f"p{query}[{sub_window}:{passed_up_to}]")

    def pass_on(self, query: str, sub_window: int) -> None:
        """The query was passed what the last update inserted into a sub-window that it had read."""
        self._note(f"p{query}[{sub_window}]")

    def undo(self, query: str, sub_window: int) -> None:
        """The query has taken back its read of a sub-window."""
        self._note(f"u{query}[{sub_window}]")

    def commit(self, query: str, length: int) -> None:
        """The query has committed, over that many sub-windows."""
        with self._lock:
            self._operations.append(f"c{query}")
            self._lengths[query] = length

    def abort(self, query: str) -> None:
        """The query was aborted."""
        self._note(f"a{query}")

    def update(self, number: int, sub_window: int, inserted: Iterable[int] = ()) -> None:
        """A window update has replaced its sub-window, inserted into others, and committed."""
        self._note(f"w{number}[{sub_window}]", *(f"i{number}[{other}]" for other in inserted), f"c{number}")
