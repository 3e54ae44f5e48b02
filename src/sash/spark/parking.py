"""Parked queries: those that a job goes on without, why, and since when. The list is in the checkpoint."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from sash.spark.folders import Folder
from sash.spark.layout import Suspended

NAME = "parked.json"

Cause = Literal["sink", "operator", "expression", "state"]
"""What failed: its sink, its operators, or an expression above a source, before rows are logged; or it grew past MAX STATE.

The operators of a query whose sink failed go on, and its outbox has its changes; those of the others stand still. Where an
expression above a source failed, the rows that come meanwhile are not in the query's logs.
"""


Way = Literal["", "replay", "net"]
"""How a query goes on: not at all, with every change that it has missed, or with the net difference of its answer."""


@dataclass(frozen=True)
class Parked:
    """Why and since when a query is parked; `batch` is the first one that its sink has not got.

    A query that is `resuming` runs again, but some shards may not have reached the others yet: `delivered` has those that
    have, and the batch in which they did. The rows that it has missed are gone if it is `lost`, and have never been logged
    if they are `unlogged`. Its last answer may be `unknown`: then it cannot go on with a net difference.
    """

    cause: Cause
    reason: str
    batch: int
    since: str
    resuming: Way = ""
    lost: bool = False
    unlogged: bool = False
    unknown: bool = False
    delivered: Mapping[str, int] = field(default_factory=dict)

    @property
    def stands(self) -> bool:
        """Whether the query's operators stand still."""
        return self.cause != "sink" and not self.resuming


class Parking:
    """The parked queries of a job, by name; its methods may be called from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        found = json.loads(folder.read(NAME) or "{}")
        self._parked = {name: Parked(**entry) for name, entry in found.items()}

    @property
    def names(self) -> frozenset[str]:
        """The parked queries, those that go on among them."""
        return frozenset(self._parked)

    def __getitem__(self, query: str) -> Parked | None:
        return self._parked.get(query)

    @property
    def suspended(self) -> Suspended:
        """The queries whose operators stand still, or begin again."""
        known = list(self._parked.items())
        standing = [(name, parked) for name, parked in known if parked.stands]
        net = [(name, parked) for name, parked in known if parked.resuming == "net"]
        return Suspended(
            standing=frozenset(name for name, _ in standing),
            unevaluated=frozenset(name for name, parked in standing if parked.cause == "expression"),
            lost=frozenset(name for name, parked in standing if parked.lost or parked.unlogged),
            rebuilt=frozenset(name for name, _ in net),
            emptied=frozenset(name for name, parked in net if parked.unlogged),
        )

    @property
    def standing(self) -> frozenset[str]:
        """The queries whose operators stand still."""
        return self.suspended.standing

    @property
    def resuming(self) -> dict[str, Parked]:
        """The queries that go on, and of which some shards may not have reached the others."""
        return {name: parked for name, parked in list(self._parked.items()) if parked.resuming}

    def park(self, query: str, cause: Cause, reason: str, batch: int) -> None:
        """Park a query, and say so. One that was going on when it failed again has missed what it had missed before."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        with self._lock:
            made = Parked(cause, reason, batch, now, unlogged=cause == "expression")
            known = self._parked.get(query)
            if known is not None and not (known.resuming and known.delivered):
                made = replace(
                    known, cause=cause, reason=reason, since=now, resuming="", unlogged=made.unlogged or known.unlogged
                )
            self._parked = {**self._parked, query: made}
            self._save()
        logging.getLogger("sash").warning(
            "query %s is parked: %s; the others go on", query, reason, extra={"parked": query}
        )

    def change(self, query: str, **fields: Any) -> None:
        """Change what is known of a parked query."""
        with self._lock:
            self._parked = {**self._parked, query: replace(self._parked[query], **fields)}
            self._save()

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
