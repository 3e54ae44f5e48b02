"""Update-pattern-aware: as direct, with operators and buffers chosen by update pattern (paper 5, 5.3): the default.

FIFO buffers where rows expire in order, calendars where they do not, delta-star DISTINCT, hash buffers above negation.
Where ends must be said, a join takes its results back by probing once more instead of having them kept. DISTINCT always
says them: to an operator above, a value whose row is replaced has not changed.
"""

from __future__ import annotations

from sash.physical.strategies.base import Ear, Settings, Strategy
from sash.physical.strategies.direct import Clock
from sash.state.memory import Memory


def _clock(memory: Memory, settings: Settings) -> Ear:
    return Clock(memory)


UPDATE_PATTERN_AWARE = Strategy("update-pattern-aware", "exp stamps and the clock", _clock, speaking=True)
