"""The live rows of one input, for every kind of edge: changes and expirations become one list of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge
from sash.operators.kernels.events import interleave
from sash.state.buffer import Buffer
from sash.state.calendar import StrictCalendar
from sash.state.changes import ChangeBatch, Signs
from sash.state.columns import gather
from sash.state.hash import HashBuffer
from sash.state.hashing import hash_rows
from sash.state.memory import Array, Arrays, Ints, Memory
from sash.time import FOREVER

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class RowEvents:
    """The events of one input, sorted by time with ends first at each instant; `items` are slots or codes."""

    ts: Ints
    sign: Signs
    items: Ints


def own(array: Array) -> Array:
    """The array, copied if it is a read-only view: kernels are compiled for writable arrays."""
    return array if array.flags.writeable and array.flags.c_contiguous else array.copy()


class LiveRows:
    """Numbers the live rows of an input; operators keep what they need of a row in arrays indexed by its slot.

    `nulls`: rows of a strict edge may consist of a NULL alone; in joins they have a key, which is not NULL.
    """

    def __init__(self, memory: Memory, edge: Edge, *, nulls: bool = False) -> None:
        self._nulls = nulls
        self._buffer: Buffer | HashBuffer = edge.buffer(memory) if edge.timed else HashBuffer(memory)
        self._retracted = (
            HashBuffer(memory.scope("said"), slots=self._buffer.slots) if edge.expiry == "strict" else None
        )

    def apply(self, batch: ChangeBatch, clock: int) -> tuple[RowEvents, Ints, Ints]:
        """The events up to the clock, the positions in the batch of the rows that arrive, and their slots.

        The caller releases the slots of the rows that ended once their contents have been used.
        """
        if isinstance(self._buffer, HashBuffer):
            slots = self._buffer.apply(own(batch.sign), *hash_rows(batch.columns, len(batch), exact=True))
            arrived = np.flatnonzero(batch.sign > 0)
            return RowEvents(own(batch.ts), own(batch.sign), slots), arrived, slots[arrived]
        slots = self._buffer.add(batch.exp) if self._retracted is None else self._place(batch, self._retracted)
        gone, ends = self._buffer.drain(clock)
        events = RowEvents(*interleave(own(batch.ts), own(batch.sign), slots, ends, gone))
        arrived = np.arange(len(batch)) if self._retracted is None else np.flatnonzero(batch.sign > 0)
        return events, arrived, slots if len(arrived) == len(batch) else slots[arrived]

    def _place(self, batch: ChangeBatch, retracted: HashBuffer) -> Ints:
        """The slots of the changes of a strict edge: found by expiration time if they have one, otherwise by value."""
        assert isinstance(self._buffer, StrictCalendar)
        low, high = hash_rows(batch.columns, len(batch), exact=True)
        if self._nulls:
            # The lower halves of NULL and of zero are equal, where these are all that a row has.
            low = low ^ (high * _ODD)
        sign, exp, timed = own(batch.sign), own(batch.exp), batch.exp < FOREVER
        if timed.all():
            return self._buffer.apply(sign, exp, low)
        slots = np.empty(len(batch), np.int64)
        slots[timed] = self._buffer.apply(sign[timed], exp[timed], low[timed])
        slots[~timed] = retracted.apply(sign[~timed], low[~timed], high[~timed])
        return slots

    @property
    def searched(self) -> int:
        """The number of rows examined in calendars to find retracted ones."""
        return self._buffer.searched if isinstance(self._buffer, StrictCalendar) else 0

    def release(self, slots: Ints) -> None:
        """Free the slots of rows that ended."""
        self._buffer.release(slots)

    @property
    def capacity(self) -> int:
        """Every slot is below this."""
        return self._buffer.capacity

    @property
    def live(self) -> int:
        """The number of live rows."""
        return self._buffer.live


class LiveCodes:
    """The live rows of an input of which only a code matters; the code of a stamped row is kept until it expires."""

    def __init__(self, memory: Memory, edge: Edge) -> None:
        self._buffer = edge.buffer(memory) if edge.stamped else None
        self._rows = Arrays(memory, {"row.code": np.int64})

    def apply(self, batch: ChangeBatch, codes: Ints, clock: int) -> RowEvents:
        """The events up to the clock, by code."""
        if self._buffer is None:
            return RowEvents(own(batch.ts), own(batch.sign), codes)
        slots = self._buffer.add(batch.exp)
        self._rows.reserve(self._buffer.capacity)
        code_of = self._rows["row.code"]
        code_of[slots] = codes
        gone, ends = self._buffer.drain(clock)
        events = RowEvents(*interleave(own(batch.ts), own(batch.sign), codes, ends, code_of[gone]))
        self._buffer.release(gone)
        return events

    @property
    def live(self) -> int:
        """The number of rows that are kept individually."""
        return 0 if self._buffer is None else self._buffer.live


def rows_at(batch: ChangeBatch, positions: Ints) -> tuple[pa.Array, ...]:
    """The columns of the rows at these ascending positions; not copied if these are all rows."""
    if len(positions) == len(batch):
        return batch.columns
    return gather(batch.columns, positions)
