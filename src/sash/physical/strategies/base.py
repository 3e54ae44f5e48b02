"""What a strategy is: where Expire operators sit, and how an operator learns that time has passed.

An operator either *must* process the expiration of a row or *need not* (paper 3; `facts.must_expire`). A strategy decides
for the operators with stamped inputs; on an explicit input every end is a retraction, and nothing else need be learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import numpy as np

from sash.state.changes import ChangeBatch
from sash.state.memory import Memory


@dataclass(frozen=True)
class TimeSettings:
    """Settings of time sources in microseconds: the probing period (None: always), and how long a time may wait for a row."""

    probe: int | None = None
    patience: int = 100_000


class Delivery(Enum):
    """What becomes of a time that is due on an edge: it is sent as a message, rows have carried it, or it waits."""

    MESSAGE = "message"
    CARRIED = "carried"
    WAITING = "waiting"


class TimeSource:
    """How an operator learns the time on one input edge: `time` is the clock it has learnt (every instant before it).

    This one learns it from rows alone. It starts at instant 0, when a query starts. Its state is a few words of `memory`, so
    it survives the batch, and is stored with the checkpoint.
    """

    def __init__(self, memory: Memory, settings: TimeSettings) -> None:
        self._words = memory.array("ear", np.int64, 8)
        if not self._words[0]:
            self._words[0] = 1
            self._words[1] = 1

    @property
    def words(self) -> list[int]:
        """All that it has learnt, for a checkpoint."""
        return [int(word) for word in self._words]

    def recall(self, words: Sequence[int]) -> None:
        """Go on with what `words` has returned."""
        self._words[: len(words)] = words

    @property
    def time(self) -> int:
        """Every instant before this is over, as far as the operator has learnt."""
        return int(self._words[1])

    @property
    def switches(self) -> int:
        """How often it has changed the way in which it learns."""
        return 0

    def advance(self, time: int) -> None:
        """Move the time on to at least this."""
        self._words[1] = max(int(self._words[1]), time)

    def receive_rows(self, batch: ChangeBatch, stamped: bool, now: int) -> bool:
        """Rows reach the operator, so it is at least as late as they are; on stamped edges only insertions count.

        Returns whether they carried a time that waited.
        """
        ts = batch.ts[batch.sign > 0] if stamped else batch.ts
        if len(ts):
            self.advance(int(ts[-1]) + 1)
        return False

    def receive_message(self, time: int, now: int, since: int | None = None) -> Delivery:
        """Every instant up to `time` is over, which the operator learns by a message; the first such time is `since`."""
        return Delivery.WAITING

    def probe(self, time: int) -> None:
        """The inputs have learnt that every instant before `time` is over."""

    def tick(self, progress: int, now: int) -> bool:
        """The system clock stands at `now`, and the edge is complete before `progress`.

        Returns whether a time that waited is sent as a message.
        """
        return False

    def flush(self) -> bool:
        """The input ends; returns whether a time that waited is sent as a message."""
        return False

    @property
    def wake(self) -> int | None:
        """When to tick next, if nothing happens before."""
        return None


Placement = Literal["bottom", "above joins", "top"]
"""Where expirations become retractions: at the scan, at operators that must process them, or at the answer."""


@dataclass(frozen=True)
class Strategy:
    """One row of the table of strategies. `time_source` is the kind that its edges have; `learns` names it in EXPLAIN.

    `by_pattern`: buffers and operators are chosen by update pattern. `retracting_joins`: joins and DISTINCT retract what
    expires themselves where retractions are needed, so that no Expire keeps their results. `adaptive_expiration`: rows
    above a negation end by calendar or by retractions, by the share of premature ones. `synchronised`: operators wait for
    rows on their way. `paced`: an operator runs up to the time that it has learnt, and may be behind the clock of its shard;
    beside rows, it learns by `messages` that scans send, or by `probing` its inputs.
    `recomputes`: no operator continues from its state; every answer is computed anew.
    """

    name: str
    learns: str
    time_source: type[TimeSource]
    expire: Placement = "top"
    by_pattern: bool = True
    retracting_joins: bool = False
    adaptive_expiration: bool = False
    paced: bool = False
    messages: bool = False
    probing: bool = False
    synchronised: bool = True
    recomputes: bool = False
    note: Callable[[Any], str | None] = lambda _plan: None

    @property
    def by_rows_alone(self) -> bool:
        """Whether operators learn the time only from the rows that reach them."""
        return self.paced and not (self.messages or self.probing)
