"""Measurements that are sampled in a thread of their own while a query runs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Sampler(ABC):
    """Samples when entered, then in every period, and when left."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample_all, name=type(self).__name__, daemon=True)

    def __enter__(self) -> Self:
        self.sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self.sample()

    def _sample_all(self) -> None:
        while not self._done.wait(self._period):
            self.sample()

    @abstractmethod
    def sample(self) -> None:
        """Take one sample."""
