"""The levels of isolation by name."""

from __future__ import annotations

from sash.errors import IsolationError
from sash.window_store.scheduling.isolation import Isolation
from sash.window_store.scheduling.latest import Latest
from sash.window_store.scheduling.serial import Serial
from sash.window_store.scheduling.ttu import TimeToUpdate
from sash.window_store.scheduling.window_serializable import WindowSerializable

LEVELS: dict[str, Isolation] = {
    level.name: level for level in (Serial(), WindowSerializable(), Latest(), TimeToUpdate())
}


def level(name: str) -> Isolation:
    """The level of that name; `latest` asks for the latest state and leaves the order to us: `ttu`."""
    found = LEVELS.get("ttu" if name == "latest" else name)
    if found is None:
        raise IsolationError(f"there is no isolation level {name!r}: choose latest, {', '.join(LEVELS)}")
    return found
