"""Direct: operators go by the `exp` stamps of their rows and the clock; `-` rows come only from negation (paper 5, 5.2).

The plain form: every stamped input is kept in a calendar, whatever the order in which its rows expire, and DISTINCT keeps
all of its input beside its output.
"""

from __future__ import annotations

from sash.physical.strategies.base import Ear, Strategy


class Clock(Ear):
    """Hears the clock at once."""

    def tick(self, progress: int, now: int) -> None:
        self.hear(progress)


DIRECT = Strategy("direct", "exp stamps and the clock", Clock, by_pattern=False)
