"""Latest-window-serializable, reading in the order of the array: Algorithm 1 (section 4.1).

Updates do not wait. A query that has read a sub-window before it was replaced is aborted and starts again, or takes
that read back where old copies are kept.
"""

from __future__ import annotations

from collections.abc import Collection

from sash.window_store.scheduling.isolation import Isolation


class Latest(Isolation):
    """The latest state at commit, sub-windows in the order of their numbers."""

    name = "latest-window-serializable"
    reaches = "latest-window-serializable"

    def pick(self, unread: Collection[int], n: int) -> int:
        return min(unread, key=lambda version: version % n)
