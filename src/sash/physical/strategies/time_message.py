"""Time messages: as negative tuples, where an operator that need not process an end passes on only its time (paper 3).

The scan says when a row ends, once per change batch. A selection, projection, union or join does no work on it: it purges
its own state by `exp` stamps and passes the time on. DISTINCT, aggregates and set operators expire from their own state
when they hear it. `-` rows come only from operators that invalidate.
"""

from __future__ import annotations

from sash.physical.strategies.base import Ear, Strategy


class Messages(Ear):
    """Hears rows and time messages."""

    def message(self, time: int, now: int) -> None:
        self.hear(time + 1)


TIME_MESSAGE = Strategy("time-message", "time messages, sent by the scans when a row ends", Messages, messages=True)
