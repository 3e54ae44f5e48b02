"""The options of a snapshot or periodic query over a kept window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from sash.errors import OptionError

IsolationLevel = Literal["latest", "ttu", "latest-window-serializable", "window-serializable", "serial"]
AccessPath = Literal["WS", "SS", "IS", "ISS"]
AccessOption = Literal["auto", "WS", "SS", "IS", "ISS"]
ReadOption = Literal["local", "spark"]


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
        check_choice("isolation level", self.isolation, IsolationLevel)
        check_choice("access path", self.access, AccessOption)
        check_choice("reads option", self.reads, ReadOption)
        if self.timeout is not None and self.timeout < 0:
            raise OptionError(f"timeout must be 0 seconds or more, not {self.timeout:g}")
        if self.every is not None and self.every < 1:
            raise OptionError(f"every must be 1 window update or more, not {self.every}")


def check_choice(kind: str, value: str, choices: Any) -> None:
    """Raise an OptionError unless the value is one of a Literal's words."""
    if value not in get_args(choices):
        raise OptionError(f"there is no {kind} {value!r}: choose {', '.join(get_args(choices))}")
