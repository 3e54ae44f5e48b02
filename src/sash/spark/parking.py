"""Parked queries: those that a job goes on without, why, and since when. The list is in the checkpoint."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal

from sash.spark.folders import Folder

NAME = "parked.json"

Cause = Literal["sink", "operator", "expression", "state"]
"""What failed: its sink, its operators, or an expression above a source, before rows are logged; or it grew past MAX STATE.

The operators of a query whose sink failed go on, and its outbox has its changes; those of the others stand still. Where an
expression above a source failed, the rows that come meanwhile are not in the query's logs.
"""


@dataclass(frozen=True)
class Parked:
    """Why and since when a query is parked; `batch` is the first one that its sink has not got."""

    cause: Cause
    reason: str
    batch: int
    since: str


class Parking:
    """The parked queries of a job, by name; its methods may be called from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        found = json.loads(folder.read(NAME) or "{}")
        self._parked = {name: Parked(**entry) for name, entry in found.items()}

    def __getitem__(self, query: str) -> Parked | None:
        return self._parked.get(query)

    @property
    def standing(self) -> frozenset[str]:
        """The queries whose operators stand still."""
        return frozenset(name for name, parked in list(self._parked.items()) if parked.cause != "sink")

    @property
    def unevaluated(self) -> frozenset[str]:
        """The queries whose expressions above sources are not evaluated."""
        return frozenset(name for name, parked in list(self._parked.items()) if parked.cause == "expression")

    def park(self, query: str, cause: Cause, reason: str, batch: int) -> None:
        """Park a query, and say so."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        with self._lock:
            self._parked = {**self._parked, query: Parked(cause, reason, batch, now)}
            self._save()
        logging.getLogger("sash").warning("query %s is parked: %s; the others go on", query, reason)

    def release(self, query: str) -> None:
        """Let a query go on."""
        with self._lock:
            self._parked = {name: parked for name, parked in self._parked.items() if name != query}
            self._save()

    def keep_only(self, queries: frozenset[str]) -> None:
        """Forget queries that the job no longer has."""
        if not self._parked.keys() <= queries:
            with self._lock:
                self._parked = {name: parked for name, parked in self._parked.items() if name in queries}
                self._save()

    def _save(self) -> None:
        self._folder.write(NAME, json.dumps({name: asdict(parked) for name, parked in self._parked.items()}, indent=2))
