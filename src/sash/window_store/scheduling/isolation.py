"""What a level of isolation decides about one query: which sub-window it reads next, and whether it follows updates.

Everything else (what has been read, what an update makes stale, commits) is the same for all levels and stands in
`scheduler.py`. Golab, Bijay and Özsu, "On concurrency control in sliding window queries over data streams", section 4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar


class Isolation(ABC):
    """A level of isolation and its order of reads; it has no state, so one object serves all queries."""

    name: ClassVar[str]
    #: the level that histories made under it reach, in the words of `history.classify`
    reaches: ClassVar[str]
    #: whether window updates wait for queries of this level (and these for one another)
    holds_updates: ClassVar[bool] = False
    #: whether a running query moves on with each update to the new state of the window
    follows: ClassVar[bool] = True
    #: whether a query of a higher priority suspends those of this level
    suspends: ClassVar[bool] = True

    @abstractmethod
    def pick(self, unread: Collection[int], n: int) -> int:
        """The version to read next, out of those (at least one) that have yet to be read.

        A version is the number of the update that wrote it; it sits in sub-window `version % n`, and of the versions
        in the window the one with the smallest number is the next to be replaced.
        """
