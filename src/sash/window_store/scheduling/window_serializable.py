"""Window-serializable: a query reads the window as it was when the query began, whatever comes meanwhile.

Updates do not wait. The oldest sub-windows are the first to be replaced, hence they are read first: fewer old copies
need keeping. A copy that is gone before it was read makes the query start again. Definition 1; section 5.1's `WS`.
"""

from __future__ import annotations

from collections.abc import Collection

from sash.window_store.scheduling.isolation import Isolation


class WindowSerializable(Isolation):
    """The state that a query began with."""

    name = "window-serializable"
    reaches = "window-serializable"
    follows = False

    def pick(self, unread: Collection[int], n: int) -> int:
        return min(unread)
