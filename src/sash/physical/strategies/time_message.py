"""Time messages: as negative tuples, where an operator that need not process an expiration forwards only its time (paper 3).

The scan sends the time at which rows expire, once per change batch. A selection, projection, union or join does no work on
it: it purges its own state by `exp` stamps and forwards the time. DISTINCT, aggregates and set operators expire from their
own state when they receive it. Retractions come only from operators that invalidate.
"""

from __future__ import annotations

from sash.physical.strategies.base import Delivery, Strategy, TimeSource


class MessageTimes(TimeSource):
    """Learns the times of rows and of time messages."""

    def receive_message(self, time: int, now: int, since: int | None = None) -> Delivery:
        self.advance(time + 1)
        return Delivery.MESSAGE


TIME_MESSAGE = Strategy(
    "time-message", "time messages, sent by the scans when a row expires", MessageTimes, paced=True, messages=True
)
