"""Window DISTINCT over stamped rows: delta-star (paper 5, 5.3.1; paper 1, Algorithm 4.1).

Meaning: a value is in the output from its first row's ts on; its output row expires with that row and is replaced, at
that instant, by the duplicate that expires last. State is one entry per value: the reported expiration time and the
latest expiration time of any duplicate since (not of the youngest duplicate: on inputs that expire out of order an older
one may live longer). The input is stamped, and so is the output.

With `retracting` the output is explicit: (value, ts, +) when a value appears and (value, exp, -) at its last expiration
time. A replacement would be a `-` and a `+` of equal rows at one instant, so it is not sent, and only values whose
reported row has expired are examined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sash.operators.aggregates.base import canonical
from sash.operators.base import Edge, Operator
from sash.state.calendar import CalendarBuffer
from sash.state.changes import ChangeBatch, Signs
from sash.state.columns import gather
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.jit import grown, kernel
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore
from sash.time import BEGINNING


class Distinct(Operator):
    """Keeps by value code `reported`, the expiration time sent or to be checked next, and `latest`, the last one known."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], retracting: bool = False) -> None:
        (edge,) = inputs
        self._retracting = retracting
        self._dtypes = edge.dtypes
        self._values = Interner(memory.scope("values"))
        self._rows = RowStore(memory.scope("rows"), edge.dtypes)
        self._expiry = Arrays(memory, {"reported": np.int64, "latest": np.int64})
        self._calendar = CalendarBuffer(memory.scope("calendar"), edge.partitions, edge.width)
        self._shared = False
        self._dead = np.empty(0, np.int64)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        codes, fresh = self._values.intern(*hash_rows(batch.columns, len(batch)))
        self._expiry.reserve(self._values.capacity)
        reported, latest = self._expiry["reported"], self._expiry["latest"]
        new = codes[fresh]
        reported[new] = latest[new] = BEGINNING
        if len(new):
            self._rows.put(new, [canonical(column) for column in gather(batch.columns, fresh)])
        expired, _ = self._calendar.drain(clock)
        touched = np.concatenate((new, expired))
        if self._retracting:
            changed, ts, sign = _retract(batch.ts, batch.exp, codes, touched, clock, reported, latest)
            order = np.argsort(2 * ts + (sign > 0), kind="stable")
            changed = changed[order]
            output = replace(ChangeBatch.explicit(ts[order], sign[order], self._rows.take(changed)), slots=changed)
        else:
            output = self._output(*_advance(batch.ts, batch.exp, codes, touched, clock, reported, latest))
        ends = reported[touched]
        self._calendar.schedule(touched[ends >= clock], ends[ends >= clock])
        self._dead = touched[ends < clock]
        if not self._shared:
            self.settle()
        return output

    def shared_rows(self) -> RowStore:
        self._shared = True
        return self._rows

    def settle(self) -> None:
        self._rows.free(self._dead)
        self._values.forget(self._dead)
        self._dead = self._dead[:0]

    def _output(self, codes: Ints, ts: Ints, exp: Ints) -> ChangeBatch:
        order = np.argsort(ts, kind="stable")
        return ChangeBatch.stamped(ts[order], exp[order], self._rows.take(codes[order]))

    @property
    def state_rows(self) -> int:
        return self._values.live


@kernel
def _advance(
    ts: Ints, exp: Ints, codes: Ints, expired: Ints, clock: int, reported: Ints, latest: Ints
) -> tuple[Ints, Ints, Ints]:
    """Apply arrivals in time order, after the pending expirations of their values; then expire up to the clock."""
    size = len(ts) + len(expired) + 16
    out_codes = np.empty(size, np.int64)
    out_ts = np.empty(size, np.int64)
    out_exp = np.empty(size, np.int64)
    count = 0
    for index in range(len(ts) + len(expired)):
        arrival = index < len(ts)
        code = codes[index] if arrival else expired[index - len(ts)]
        now = ts[index] if arrival else clock
        if count + 2 >= len(out_codes):
            size = 2 * len(out_codes)
            out_codes, out_ts, out_exp = grown(out_codes, size), grown(out_ts, size), grown(out_exp, size)
        if reported[code] < now and latest[code] > reported[code]:
            out_codes[count], out_ts[count], out_exp[count] = code, reported[code], latest[code]
            reported[code] = latest[code]
            count += 1
        if arrival:
            latest[code] = max(latest[code], exp[index])
            if reported[code] <= now and latest[code] > now:
                out_codes[count], out_ts[count], out_exp[count] = code, now, latest[code]
                reported[code] = latest[code]
                count += 1
    return out_codes[:count].copy(), out_ts[:count].copy(), out_exp[:count].copy()


@kernel
def _retract(
    ts: Ints, exp: Ints, codes: Ints, expired: Ints, clock: int, reported: Ints, latest: Ints
) -> tuple[Ints, Ints, Signs]:
    """As `_advance`, with retractions and without replacements: (codes, times, signs), not sorted.

    An arrival of a known value causes a change only if the value has ended before, so there are at most two changes per
    arrival.
    """
    size = 2 * len(ts) + len(expired)
    out_codes = np.empty(size, np.int64)
    out_ts = np.empty(size, np.int64)
    out_sign = np.empty(size, np.int8)
    count = 0
    for index in range(len(ts)):
        code, now = codes[index], ts[index]
        if exp[index] <= now:
            continue
        if latest[code] < now:
            if latest[code] > BEGINNING:
                out_codes[count], out_ts[count], out_sign[count] = code, latest[code], -1
                count += 1
            out_codes[count], out_ts[count], out_sign[count] = code, now, 1
            count += 1
        latest[code] = max(latest[code], exp[index])
    for index in range(len(expired)):
        code = expired[index]
        reported[code] = latest[code]
        if BEGINNING < latest[code] < clock:
            out_codes[count], out_ts[count], out_sign[count] = code, latest[code], -1
            count += 1
    return out_codes[:count].copy(), out_ts[:count].copy(), out_sign[:count].copy()
