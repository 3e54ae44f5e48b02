"""The operator interface: a function from change batches to a change batch, with state in flat arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from sash.state.buffer import Buffer
from sash.state.calendar import CalendarBuffer, StrictCalendar
from sash.state.changes import ChangeBatch
from sash.state.fifo import FifoBuffer
from sash.state.jit import kernel
from sash.state.memory import Ints, Memory
from sash.state.rows import RowStore
from sash.time import SECOND

Expiry = Literal["fifo", "calendar", "strict", "explicit"]

Learnt = dict[str, list[float]]
"""Arrays by name, as they are stored with a checkpoint."""


@dataclass(frozen=True)
class Edge:
    """The properties of one input of an operator: its columns, and how its rows end.

    `fifo` and `calendar` edges are stamped: rows carry their expiration times, in order of arrival (`fifo`) or not.
    On an `explicit` edge every row ends by a retraction (a `-` row). On a `strict` edge a row ends at its expiration
    time, or earlier by a retraction with the same expiration time; a row that expires at FOREVER ends by a retraction.
    `partitions` and `width` configure a calendar buffer.
    """

    dtypes: tuple[pa.DataType, ...]
    expiry: Expiry
    partitions: int = 1024
    width: int = SECOND

    @property
    def stamped(self) -> bool:
        """Whether rows end only at their expiration times, without retractions."""
        return self.expiry in ("fifo", "calendar")

    @property
    def timed(self) -> bool:
        """Whether rows may end at their expiration times, without retractions."""
        return self.expiry != "explicit"

    def buffer(self, memory: Memory) -> Buffer:
        """A buffer for the rows of a stamped or strict edge."""
        if self.expiry == "fifo":
            return FifoBuffer(memory)
        if self.expiry == "strict":
            return StrictCalendar(memory, self.partitions, self.width)
        return CalendarBuffer(memory, self.partitions, self.width)


class Operator(ABC):
    """Applies arrivals and expirations in time order, up to the clock.

    `process` takes one batch per input (sorted, every ts < clock, and no ts before the clock of the call before) and
    returns the changes of the output with ts < clock, sorted, netted per instant. The constructor attaches the state
    from `memory`, so a new operator on the same memory continues where the last one stopped.
    """

    @abstractmethod
    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        """The changes of the output between the last clock and this one."""

    def shared_rows(self) -> RowStore:
        """The store of its output rows, for the operator above to read; rows stay in it until `settle`."""
        raise NotImplementedError(f"{type(self).__name__} does not share its rows")

    def settle(self) -> None:  # noqa: B027  (most have nothing to settle)
        """Called when all operators above have processed the output of the last call."""

    @property
    def rows_examined(self) -> int:
        """The number of rows examined in searches, for operators that count them."""
        return 0

    net: bool = False
    """Whether only the sum of a call's changes matters, because state is being restored. Operators may then leave out rows
    that do not outlast the call, and give all changes the time of the last one."""

    premature: int = 0
    """The number of rows retracted prematurely: at an instant at which none of the rows they come from ended."""

    @property
    def current_choice(self) -> tuple[str, str] | None:
        """The adaptive choice now in use, and its reason; None if the operator makes no such choice."""
        return None

    @property
    def learnt(self) -> Learnt | None:
        """What the operator has learnt at run time and cannot learn again from its live rows: its adaptive choice, and the
        counts for the next one. It is stored with the checkpoint, for `recall`."""
        return None

    def recall(self, learnt: Learnt) -> None:  # noqa: B027  (most learn nothing)
        """Go on with what an operator over the same rows has learnt."""

    @property
    def state_rows(self) -> int:
        """The number of rows in the operator's state."""
        return 0

    @property
    def refused(self) -> int:
        """The number of retractions in the last call that matched no row and were ignored."""
        return 0


@kernel
def merge(first: Ints, second: Ints) -> Ints:
    """The order that merges two sorted arrays of times, as positions in their concatenation; `first` wins ties."""
    n, m = len(first), len(second)
    order = np.empty(n + m, np.int64)
    i = j = 0
    for index in range(n + m):
        if j >= m or (i < n and first[i] <= second[j]):
            order[index] = i
            i += 1
        else:
            order[index] = n + j
            j += 1
    return order
