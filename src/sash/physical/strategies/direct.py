"""Direct: operators go by the `exp` stamps of their rows and the clock; `-` rows come only from negation (paper 5, 5.2).

The plain form: every stamped input is kept in a calendar, whatever the order in which its rows expire, and DISTINCT keeps
all of its input beside its output.
"""

from __future__ import annotations

from sash.physical.strategies.base import Ear, Settings, Strategy
from sash.state.memory import Memory


class Clock(Ear):
    """Hears the clock at once."""

    def tick(self, progress: int, now: int) -> None:
        self.hear(progress)


def _clock(memory: Memory, settings: Settings) -> Ear:
    return Clock(memory)


DIRECT = Strategy("direct", "exp stamps and the clock", _clock, by_pattern=False)
