"""The memory of this process and its children: the JVM and its Python workers."""

from __future__ import annotations

from bench.sampler import Sampler
from sash.errors import SashError

_PERIOD = 0.2


class PeakMemory(Sampler):
    """Samples the resident memory of the process tree while entered; `peak` is the largest sum, in bytes.

    Pages that processes share count once for each of them, so this is an upper bound.
    """

    def __init__(self) -> None:
        super().__init__(_PERIOD)
        try:
            import psutil
        except ImportError:
            raise SashError("benchmarks measure memory with psutil: pip install 'sash[bench]'") from None
        self._psutil = psutil
        self.peak = 0

    def sample(self) -> None:
        self.peak = max(self.peak, self._now())

    def _now(self) -> int:
        """The sum over all processes; one may end while it is read.

        A process that was just forked and has not run its command yet still maps its parent's memory, so it is left out.
        """
        own = self._psutil.Process()
        total = 0
        mapped: dict[int, int] = {}
        for process in (own, *own.children(recursive=True)):
            try:
                memory, parent = process.memory_info(), process.ppid()
            except self._psutil.NoSuchProcess:
                continue
            mapped[process.pid] = memory.vms
            if mapped.get(parent) != memory.vms:
                total += memory.rss
        return total
