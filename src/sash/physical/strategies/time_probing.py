"""Time probing: an operator probes its inputs, level by level down to the scans, for the time (paper 1, 3.1).

LocalClock is the time of the last row processed or the result of the last probe. A scan returns the system clock only while
no row waits in its queue; a row that waits holds everything above it back. A probe reads what an input had learnt before that
instant, so with a period an operator learns later, the deeper what is below it (`runtime/probing.py`).
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy, TimeSettings, TimeSource
from sash.state.memory import Memory


class ProbedTime(TimeSource):
    """Learns the times of rows at once, and those of its inputs when it probes: at a period, or always."""

    def __init__(self, memory: Memory, settings: TimeSettings) -> None:
        super().__init__(memory, settings)
        self._period = settings.probe

    def probe(self, time: int) -> None:
        self.advance(time)

    def tick(self, progress: int, now: int) -> bool:
        if self._period is None or now % self._period == 0:
            self.probe(progress)
        return False


TIME_PROBING = Strategy("time-probing", "probes of the inputs, down to the scans", ProbedTime, paced=True, probing=True)
