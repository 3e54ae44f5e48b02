"""The processor time of this process and all of its children, sampled while a query runs."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil

_PERIOD = 0.1


class ProcessorTime:
    """Samples user and system time in a thread of its own; a child that has ended keeps the time it had last."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._seconds: dict[int, float] = {}
        self._samples: list[tuple[float, float]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample_all, daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._sample()

    def seconds_since(self, moment: float) -> float:
        """The processor seconds used from a moment of the wall clock to the last sample."""
        first = bisect_left(self._samples, (moment, 0.0))
        return self._samples[-1][1] - self._samples[min(first, len(self._samples) - 1)][1]

    def _sample_all(self) -> None:
        while not self._done.wait(_PERIOD):
            self._sample()

    def _sample(self) -> None:
        for process in (self._process, *self._process.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._seconds[process.pid] = times.user + times.system
        self._samples.append((time.time(), sum(self._seconds.values())))
