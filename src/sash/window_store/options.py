"""The options of a snapshot or periodic query over a kept window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sash.arguments import check_count, check_number, check_word

IsolationLevel = Literal["latest", "ttu", "latest-window-serializable", "window-serializable", "serial"]
AccessPath = Literal["WS", "SS", "IS", "ISS"]
AccessOption = Literal["auto", "WS", "SS", "IS", "ISS"]
ReadOption = Literal["local", "spark"]


@dataclass(frozen=True)
class MemoryLimits:
    """Bytes that queries over kept windows may take (paper 2, 2.2).

    `summaries` limits what is stored beside the sub-windows of one window: where the summaries of a query do not fit, it
    scans rows. `suspended` limits the partial results of queries that wait for others: beyond it, the query of the lowest
    priority gives its own up, and reads again later. `shared` limits the scans that are kept for other queries of a group.
    """

    summaries: int = 1 << 30
    suspended: int = 256 << 20
    shared: int = 256 << 20

    def __post_init__(self) -> None:
        for name in ("summaries", "suspended", "shared"):
            check_count(f"the limit of {name}, in bytes,", getattr(self, name), least=0)


@dataclass(frozen=True)
class SnapshotOptions:
    """How a query over a kept window is executed.

    `isolation` is the isolation level; `latest` is `ttu`. A query of a higher `priority` suspends the others. `timeout`
    is in seconds. `access` forces an access path. `reads` selects where sub-windows are scanned: in this process, or as
    Spark jobs. A periodic query is executed again after `every` window updates; None executes it once.
    """

    isolation: IsolationLevel = "latest"
    priority: int = 10
    timeout: float | None = None
    access: AccessOption = "auto"
    reads: ReadOption = "local"
    every: int | None = None

    def __post_init__(self) -> None:
        check_word("isolation level", self.isolation, get_args(IsolationLevel))
        check_word("access path", self.access, get_args(AccessOption))
        check_word("reads option", self.reads, get_args(ReadOption))
        check_count("priority", self.priority, least=-(2**31))
        if self.timeout is not None:
            check_number("timeout", self.timeout)
        if self.every is not None:
            check_count("every", self.every)
