"""Latest-window-serializable, reading first what is updated last: Algorithm 2 (section 4.2), the default.

The time to update of a sub-window is the number of updates until it is replaced: n for the one just written, one less
after each later update. With versions numbered by update it is `version + n - latest`, so the highest is the youngest
unread one, and no array of counters has to be kept.

A query reads in an order that, for given slots of reads and updates, aborts only if every order does (Theorem 4; true
of each query without restarts: one that is aborted later also starts again later).
"""

from __future__ import annotations

from collections.abc import Collection

from sash.window_store.scheduling.isolation import Isolation


class TimeToUpdate(Isolation):
    """The latest state at commit, youngest sub-windows first."""

    name = "ttu"
    reaches = "latest-window-serializable"

    def pick(self, unread: Collection[int], n: int) -> int:
        return max(unread)
