"""Time probing: an operator asks its inputs, level by level down to the scans, what time it is (paper 1, 3.1).

LocalClock is the time of the last row processed or the answer to the last probe. A scan answers with the system clock
only while no row waits in its queue; a row that waits holds everything above it back.
"""

from __future__ import annotations

from sash.physical.strategies.base import Ear, Settings, Strategy
from sash.state.memory import Memory


class Probe(Ear):
    """Hears rows at once, and the clock of the edge when it probes: every so often, or always."""

    def __init__(self, memory: Memory, settings: Settings) -> None:
        super().__init__(memory, settings)
        self._period = settings.probe

    def tick(self, progress: int, now: int) -> None:
        if self._period is None or now % self._period == 0:
            self.hear(progress)


TIME_PROBING = Strategy("time-probing", "probes of the inputs, down to the scans", Probe)
