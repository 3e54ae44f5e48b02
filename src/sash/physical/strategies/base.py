"""What a strategy is: where Expire operators sit, and how an operator learns that time has passed.

An operator either *must* process the natural end of a row (aggregates, DISTINCT, EXCEPT, INTERSECT, semi and anti joins,
top-k, and Expire and Sample, whose output changes with time alone) or *need not* (selection, projection, union, joins:
their results carry an expiration time of their own). This is the classification of paper 3. A strategy decides for the
operators with stamped inputs; where an input is explicit, every end is a `-` row, and nothing else need be heard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sash.physical.nodes import Operation
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory

_MUST = frozenset({"Aggregate", "Distinct", "ExceptAll", "Expire", "Sample", "SemiJoin", "SetOperation", "TopK"})


def must_expire(operation: Operation) -> bool:
    """Whether the end of an input row's life may change the operator's output at that instant (paper 3).

    A join of a stamped with an explicit input is explicit: it takes its results back itself.
    """
    silent = any(child.expiry in ("fifo", "calendar", "strict") for child in operation.inputs)
    mixed = operation.expiry == "explicit" and silent
    return operation.operator in _MUST or mixed


@dataclass(frozen=True)
class Settings:
    """What ears may be told, in microseconds: the probing period (None: always), and how long a time may wait for a row."""

    probe: int | None = None
    patience: int = 100_000


class Ear:
    """How an operator hears of time on one input edge: `time` is the clock it has heard (every instant before it).

    Everyone knows of instant 0, when a query starts. Its state is a few words of `memory`, so that it is there again in the next batch.
    """

    synchronised = True
    """Whether an operator waits for what is still on its way to it."""

    def __init__(self, memory: Memory, settings: Settings) -> None:
        self._words = memory.array("ear", np.int64, 8)
        if not self._words[0]:
            self._words[0] = 1
            self._words[1] = 1

    @property
    def time(self) -> int:
        """Every instant before this has been heard of."""
        return int(self._words[1])

    def hear(self, time: int) -> None:
        """Time is at least this."""
        self._words[1] = max(int(self._words[1]), time)

    def rows(self, batch: ChangeBatch, stamped: bool, now: int) -> None:
        """Rows reach the operator: it is at least as late as they are; `-` rows tell it on explicit edges alone."""
        ts = batch.ts[batch.sign > 0] if stamped else batch.ts
        if len(ts):
            self.hear(int(ts[-1]) + 1)

    def message(self, time: int, now: int) -> None:
        """A time message reaches the operator: every instant up to `time` is over."""

    def tick(self, progress: int, now: int) -> None:
        """The system clock stands at `now`, and the edge is complete before `progress`."""

    @property
    def wake(self) -> int | None:
        """When to tick, if nothing happens before."""
        return None


Placement = Literal["bottom", "above joins", "top"]
"""Where rows that end become `-` rows: at the scan, where an operator must process the end, or at the answer."""


@dataclass(frozen=True)
class Strategy:
    """One row of the table of strategies. `ear` is the kind of ear that its edges have.

    `by_pattern` says that buffers and operators are chosen by update pattern, `speaking` that joins and DISTINCT say
    themselves what ends where that must be said, so that no Expire keeps their results, `by_share` that operators above a
    negation learn of its rows' ends by calendar or by `-` rows, by the share of premature ones.
    """

    name: str
    learns: str
    ear: type[Ear]
    expire: Placement = "top"
    by_pattern: bool = True
    speaking: bool = False
    by_share: bool = False
    messages: bool = False
    note: Callable[[Any], str | None] = lambda _plan: None

    @property
    def paced(self) -> bool:
        """Whether operators may fall behind the clock of their shard, because they do not hear it."""
        return self.name == "input-triggered"
