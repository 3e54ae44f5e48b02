"""From when the answer of a query is complete, after a change of its job, and whether its sink waits for that."""

from __future__ import annotations

import json
import threading

from sash.change.stored import AT_ONCE, Completeness
from sash.spark.folders import Folder
from sash.time import BEGINNING

NAME = "complete.json"
"""The file of a generation with the instants that became known while it ran, by query."""

_file = threading.Lock()


def completed(generation: Folder) -> dict[str, int | None]:
    """The instants that became known while a generation ran, by query."""
    found: dict[str, int | None] = json.loads(generation.read(NAME) or "{}")
    return found


class Completion:
    """The completeness of one query, as its clock goes on. With `waits`, its sink gets nothing before."""

    def __init__(
        self, complete: Completeness = AT_ONCE, waits: bool = False, query: str = "", folder: Folder | None = None
    ) -> None:
        self._after = complete.after
        self._query = query
        self._folder = folder
        self.instant = complete.instant
        self.reached = complete == AT_ONCE
        self.waits = waits and complete.known
        found = {} if folder is None else completed(folder)
        if query in found and (self._after is not None or self.reached):
            self._set(found[query])
            self.reached = False

    @property
    def holds(self) -> bool:
        """Whether the sink still waits."""
        return self.waits and not self.reached

    def learn(self, clock: int | None) -> None:
        """Take note of the clock. The first one of a new stream determines when its windows are full."""
        if self.reached or clock is None or clock <= BEGINNING:
            return
        if self._after is not None:
            self._set(clock + self._after)
            self._save()
        self.reached = self.instant is not None and clock >= self.instant

    def begin_again(self, instant: int | None) -> None:
        """Rows are missing: the answer is complete from an instant on, if that is known. The sink does not wait."""
        self.instant, self._after, self.reached, self.waits = instant, None, False, False
        self._save()

    def _save(self) -> None:
        if self._folder is not None:
            with _file:
                self._folder.write(NAME, json.dumps({**completed(self._folder), self._query: self.instant}))

    def _set(self, instant: int | None) -> None:
        self.instant, self._after = instant, None
