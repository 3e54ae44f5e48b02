"""The levels of isolation by name."""

from __future__ import annotations

from sash.errors import IsolationError
from sash.transactions.isolation import Isolation
from sash.transactions.latest import Latest
from sash.transactions.serial import Serial
from sash.transactions.ttu import TimeToUpdate
from sash.transactions.window_serializable import WindowSerializable

LEVELS: dict[str, Isolation] = {
    level.name: level for level in (Serial(), WindowSerializable(), Latest(), TimeToUpdate())
}


def level(name: str) -> Isolation:
    """The level of that name; `latest` asks for the latest state and leaves the order to us: `ttu`."""
    found = LEVELS.get("ttu" if name == "latest" else name)
    if found is None:
        raise IsolationError(f"there is no isolation level {name!r}: choose latest, {', '.join(LEVELS)}")
    return found
