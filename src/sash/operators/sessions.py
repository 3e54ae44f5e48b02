"""Sessions: rows of a key, each at most a gap after the one before, get a label in common, the time of the first of them.

Meaning: (row, ts, +) gives (row + (label), ts, +). If the session decides how long its rows are valid (`closes`), all of them
leave together a gap after the last one: (row + (label), last + gap, -), unless another row comes at that very instant, which
belongs to the session, too. If it `emits`, rows are valid for that instant alone: (row + (label), last + gap, last + gap + 1, +).
Otherwise rows expire as below, the oldest first, and labels stay: of the rows that are left,
the same ones are at most a gap apart. Where each row has a gap of its own, `last + gap` is the latest of the times plus gaps,
and the session must close.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels.sessions import LABEL, LAST, ROW, SESSION, TIMER, close, extend
from sash.operators.live_rows import own
from sash.state.calendar import CalendarBuffer
from sash.state.changes import ChangeBatch, concat
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore
from sash.state.slots import Slots
from sash.time import SECOND


class Sessions(Operator):
    """The open session of every key, and with `closes` its rows. A calendar has the keys by the end of their sessions."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge],
        keys: tuple[int, ...],
        time: int,
        gap: int,
        closes: bool,
        emits: bool = False,
        gaps: int | None = None,
    ) -> None:
        (edge,) = inputs
        self._key_columns, self._time, self._gap, self._closes, self._emits = keys, time, gap, closes, emits
        self._gaps = gaps
        self._keys = Interner(memory.scope("keys"))
        self._ends = CalendarBuffer(memory.scope("ends"), 1024, _width(gap))
        self._timed = Arrays(memory, {"timed": np.int64})
        self._sessions = Arrays(memory, {"sessions": np.int64})
        self._slots = Slots(memory.scope("slots"))
        self._records = Arrays(memory, {"records": np.int64})
        self._rows = RowStore(memory.scope("rows"), edge.dtypes if closes else [])

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        times = own(batch.columns[self._time].view(pa.int64()).to_numpy())
        codes, _ = self._keys.intern(*hash_rows([batch.columns[key] for key in self._key_columns], len(batch)))
        self._sessions.reserve(SESSION * max(self._keys.capacity, 1))
        slots = self._slots.take(len(batch)) if self._closes else np.zeros(len(batch), np.int64)
        self._records.reserve(ROW * max(self._slots.high, 1))
        if self._closes:
            self._rows.put(slots, batch.columns)
        kept = self._slots.live + self._keys.live + len(batch)
        order = np.argsort(times, kind="stable")
        labels, gone, ends, count = extend(
            times[order],
            self._own_gaps(batch)[order],
            codes[order],
            slots[order],
            self._gap,
            self._sessions["sessions"],
            self._records["records"],
            kept,
            self._closes,
        )
        placed = np.empty(len(batch), np.int64)
        placed[order] = labels
        self._watch(codes)
        count = self._end(clock, gone, ends, count)
        gone, ends = gone[:count], ends[:count]
        output = ChangeBatch(batch.ts, batch.exp, batch.sign, (*batch.columns, pa.array(placed)))
        if self._closes:
            columns = [*self._rows.take(gone), pa.array(self._records["records"][ROW * gone + LABEL])]
        if self._emits:
            output = ChangeBatch.stamped(ends, ends + 1, columns).sorted()
        elif self._closes and count:
            removed = ChangeBatch.explicit(ends, np.full(count, -1, np.int8), columns)
            output = concat([removed, output]).sorted() if len(output) else removed.sorted()
        if self._closes:
            self._rows.free(gone)
            self._slots.give(gone)
        return output

    def _own_gaps(self, batch: ChangeBatch) -> Ints:
        """The gap of each row beside that of all."""
        if self._gaps is None:
            return np.zeros(len(batch), np.int64)
        return own(batch.columns[self._gaps].to_numpy())

    def _watch(self, codes: Ints) -> None:
        """Put the keys that are new into the calendar, by the ends of their sessions."""
        sessions = self._sessions["sessions"]
        fresh = np.unique(codes)
        fresh = fresh[sessions[SESSION * fresh + TIMER] == 0]
        timers = self._ends.add(sessions[SESSION * fresh + LAST] + self._gap)
        self._timed.reserve(max(self._ends.capacity, 1))
        self._timed["timed"][timers] = fresh
        sessions[SESSION * fresh + TIMER] = timers + 1

    def _end(self, clock: int, gone: Ints, ends: Ints, count: int) -> int:
        """End the sessions that are over before the clock; keys whose sessions go on stay in the calendar."""
        timers, _ = self._ends.drain(clock)
        if not len(timers):
            return count
        sessions = self._sessions["sessions"]
        codes = self._timed["timed"][timers]
        last = sessions[SESSION * codes + LAST] + self._gap
        over = last < clock
        self._ends.schedule(timers[~over], last[~over])
        count = close(codes[over], self._gap, clock, sessions, self._records["records"], gone, ends, count)
        sessions[SESSION * codes[over] + TIMER] = 0
        self._ends.release(timers[over])
        self._keys.forget(codes[over])
        return count

    @property
    def state_rows(self) -> int:
        return self._slots.live if self._closes else self._keys.live


_USUAL = 60 * SECOND


def _width(gap: int) -> int:
    """How much time a list of the calendar has; where the gaps are those of the rows, they are taken to be a minute."""
    return max(1, (gap or _USUAL) // 512)
