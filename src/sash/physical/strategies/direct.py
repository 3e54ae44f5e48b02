"""Direct: operators go by the `exp` stamps of their rows and the clock; retractions come only from negation (paper 5, 5.2).

The plain form: every stamped input is kept in a calendar, whatever the order in which its rows expire, and DISTINCT keeps
all of its input beside its output.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy, TimeSource


class InputClock(TimeSource):
    """Learns the clock of the edge at once."""

    def tick(self, progress: int, now: int) -> bool:
        self.advance(progress)
        return False


DIRECT = Strategy("direct", "exp stamps and the clock", InputClock, by_pattern=False)
