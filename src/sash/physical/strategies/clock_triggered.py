"""Clock-triggered: every operator goes by the wall clock, whatever is still on its way to it (paper 1, 2.3).

Answers are on time and may be wrong: a row that is delayed below an operator is missed at the instants for which it
should have counted, and counts from its arrival on. For demonstration only.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy, TimeSource


class WallClock(TimeSource):
    """Learns the system clock, and waits for nothing."""

    def tick(self, progress: int, now: int) -> bool:
        self.advance(now + 1)
        return False


CLOCK_TRIGGERED = Strategy(
    "clock-triggered",
    "the wall clock, not waiting for rows that are on their way",
    WallClock,
    synchronised=False,
    note=lambda _plan: "answers may be wrong: for demonstration only",
)
