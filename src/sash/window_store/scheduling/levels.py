"""The isolation levels of queries over a window that is being updated.

A level decides which sub-window a query reads next, and whether the query follows updates to the latest state of the
window. All other decisions are the same at every level and are made by `scheduler.py`. Golab, Bijay and Özsu, "On
concurrency control in sliding window queries over data streams", section 4.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, get_args

from sash.arguments import check_word
from sash.window_store.options import IsolationLevel


class Isolation:
    """An isolation level and its read order. Levels have no state, so one object serves all queries."""

    name: ClassVar[str]
    #: the level of the histories that it produces, as `sash.testing.histories.classify` names it
    reaches: ClassVar[str]
    #: whether window updates, and other queries of this level, wait for a query of this level
    holds_updates: ClassVar[bool] = False
    #: whether a running query moves to the new state of the window with each update
    follows: ClassVar[bool] = True
    #: whether a query of a higher priority suspends those of this level
    suspends: ClassVar[bool] = True

    def pick(self, unread: Collection[int], n: int) -> int:
        """The version to read next, of one or more unread versions: by default in the order of the array.

        A version is the number of the update that wrote it. It is in sub-window `version % n`. The smallest version in
        the window is the next to be replaced.
        """
        return min(unread, key=lambda version: version % n)


class Serial(Isolation):
    """Serial execution: updates wait for the running query, and queries run in order of arrival.

    Nothing is suspended, so priorities have no effect. Section 5.1's `Serial`.
    """

    name = "serial"
    reaches = "latest-window-serializable"
    holds_updates = True
    suspends = False


class WindowSerializable(Isolation):
    """Window-serializable: a query reads the window as it was when the query began. Updates do not wait.

    Queries read the oldest sub-windows first, because these are replaced first: fewer old copies must be retained. A
    query restarts if a copy is gone before it was read. Definition 1; section 5.1's `WS`.
    """

    name = "window-serializable"
    reaches = "window-serializable"
    follows = False

    def pick(self, unread: Collection[int], n: int) -> int:
        return min(unread)


class LatestWindowSerializable(Isolation):
    """Latest-window-serializable, reading in the order of the array: Algorithm 1 (section 4.1).

    Updates do not wait. A query that has read a sub-window before it was replaced is aborted and restarts, or repeats
    that read if old copies are retained.
    """

    name = "latest-window-serializable"
    reaches = "latest-window-serializable"


class TimeToUpdate(Isolation):
    """Latest-window-serializable, reading first the sub-window that is updated last: Algorithm 2 (section 4.2).

    The time to update of a sub-window is the number of updates until it is replaced: n for the one just written, one
    less after each later update. As versions are numbered by update, it is `version + n - latest`. The sub-window with
    the highest one is therefore the youngest unread one, and no array of counters is needed.

    For given slots of reads and updates, this order aborts a query only if every order does (Theorem 4; it holds for
    each query without restarts, because a query that is aborted later also restarts later).
    """

    name = "ttu"
    reaches = "latest-window-serializable"

    def pick(self, unread: Collection[int], n: int) -> int:
        return max(unread)


LEVELS: dict[str, Isolation] = {
    level.name: level for level in (Serial(), WindowSerializable(), LatestWindowSerializable(), TimeToUpdate())
}


def level(name: str) -> Isolation:
    """The level of this name. `latest` is the latest state without a given read order: `ttu`."""
    check_word("isolation level", name, get_args(IsolationLevel))
    return LEVELS["ttu" if name == "latest" else name]
