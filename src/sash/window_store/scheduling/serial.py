"""Serial execution: updates wait for the query that is running, and queries for one another, in order of arrival.

What systems did before; nothing is suspended, so priorities mean nothing here. Section 5.1's `Serial`.
"""

from __future__ import annotations

from collections.abc import Collection

from sash.window_store.scheduling.isolation import Isolation


class Serial(Isolation):
    """One transaction after the other."""

    name = "serial"
    reaches = "latest-window-serializable"
    holds_updates = True
    suspends = False

    def pick(self, unread: Collection[int], n: int) -> int:
        return min(unread, key=lambda version: version % n)
