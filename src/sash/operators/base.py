"""What every operator is: a function from change batches to a change batch, with state in flat arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from sash.state.buffer import Buffer
from sash.state.calendar import CalendarBuffer
from sash.state.changes import ChangeBatch
from sash.state.fifo import FifoBuffer
from sash.state.jit import kernel
from sash.state.memory import Ints, Memory
from sash.state.rows import RowStore
from sash.state.strict import StrictCalendar
from sash.time import SECOND

Expiry = Literal["fifo", "calendar", "strict", "explicit"]


@dataclass(frozen=True)
class Edge:
    """What an operator knows of one input: its columns, and how the end of a row's life is learnt.

    `fifo` and `calendar` edges are stamped (rows carry their expiration time, in order of arrival or not);
    on an `explicit` edge every end is a `-` row. On a `strict` edge a row ends at its expiration time, or before by a `-`
    row that repeats it; where that is FOREVER, by a `-` row. `partitions` and `width` shape a calendar buffer.
    """

    dtypes: tuple[pa.DataType, ...]
    expiry: Expiry
    partitions: int = 1024
    width: int = SECOND

    @property
    def stamped(self) -> bool:
        """Whether no end is said."""
        return self.expiry in ("fifo", "calendar")

    @property
    def timed(self) -> bool:
        """Whether rows may end without a word."""
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
    returns the changes of the output with ts < clock, sorted, netted per instant. State is attached from `memory` when
    the operator is made, so an operator made anew on the same memory goes on where the last one stopped.
    """

    @abstractmethod
    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        """The changes of the output between the last clock and this one."""

    def shared_rows(self) -> RowStore:
        """The rows that it gives, where it keeps them: they stay until `settle`."""
        raise NotImplementedError(f"{type(self).__name__} keeps no rows for others")

    def settle(self) -> None:  # noqa: B027  (most have nothing to settle)
        """All operators above have taken what the last call gave."""

    @property
    def probes(self) -> int:
        """How many rows it has looked at to find others, where it counts them."""
        return 0

    premature: int = 0
    """How many rows it has taken back before their time, at an instant at which none of the rows they come from ended."""

    @property
    def in_force(self) -> tuple[str, str] | None:
        """What it does at present that it may do otherwise at another time, and why; None if there is no such thing."""
        return None

    @property
    def state_rows(self) -> int:
        """How many rows the operator remembers."""
        return 0

    @property
    def refused(self) -> int:
        """How many rows of the last call took back what was not there, and were left out."""
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
