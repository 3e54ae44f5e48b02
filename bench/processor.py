"""The processor time of this process and all of its children, sampled while a query runs."""

from __future__ import annotations

import time
from bisect import bisect_left
from contextlib import suppress

import psutil

from bench.sampler import Sampler

_PERIOD = 0.1


class ProcessorTime(Sampler):
    """Samples user and system time; a child that has ended keeps the time it had last."""

    def __init__(self, period: float = _PERIOD) -> None:
        super().__init__(period)
        self._process = psutil.Process()
        self._seconds: dict[int, float] = {}
        self._samples: list[tuple[float, float]] = []

    def seconds_since(self, moment: float) -> float:
        """The processor seconds used from a moment of the wall clock to the last sample."""
        first = bisect_left(self._samples, (moment, 0.0))
        return self._samples[-1][1] - self._samples[min(first, len(self._samples) - 1)][1]

    def sample(self) -> None:
        for process in (self._process, *self._process.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._seconds[process.pid] = times.user + times.system
        self._samples.append((time.time(), sum(self._seconds.values())))
