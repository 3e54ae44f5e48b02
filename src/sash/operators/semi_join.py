"""The semi-join and the anti-join over windows, keeping duplicates (paper 1, W-MINUS: Algorithm 4.3 and 4.5).

Meaning: a left row is in the output while some right row has its key (`anti`: while none has). NULL keys never match.
Of the right side only the number of rows per key is kept. The output is explicit: a left row is retracted when it ends,
or when its first match arrives (semi: when its last match ends). With `ends` it is strict: rows sent while the method is
calendars have the left row's exp and expire silently.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sash.operators.base import Edge, Learnt, Operator
from sash.operators.expiration_choice import ExpirationChoice, ExpirationPlan
from sash.operators.kernels import semi_join as loop
from sash.operators.kernels.lists import EXPIRY, WORDS, fill
from sash.operators.live_rows import LiveCodes, LiveRows, RowEvents, own, rows_at
from sash.operators.netting import net
from sash.state.changes import ChangeBatch
from sash.state.hashing import any_null, hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Memory
from sash.state.rows import RowStore
from sash.time import FOREVER


class SemiJoin(Operator):
    """Keeps left rows in lists by key code and right rows as counts; a key without rows on either side is freed."""

    def __init__(
        self,
        memory: Memory,
        inputs: tuple[Edge, Edge],
        keys: tuple[tuple[int, int], ...],
        anti: bool,
        ends: ExpirationPlan | None = None,
    ) -> None:
        left, right = inputs
        self._anti = anti
        self._left_keys, self._right_keys = tuple(key for key, _ in keys), tuple(key for _, key in keys)
        self._keys = Interner(memory.scope("keys"))
        self._lists = Arrays(memory, {"lists": np.int64})
        self._left = LiveRows(memory.scope("left"), left)
        self._links = Arrays(memory.scope("left"), {"links": np.int64})
        self._rows = RowStore(memory.scope("rows"), left.dtypes)
        self._right = LiveCodes(memory.scope("right"), right)
        self._expiration = None if ends is None else ExpirationChoice(memory.scope("ending"), ends)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        left = self._apply_left(inputs[0], clock)
        right = self._apply_right(inputs[1], clock)
        self._lists.reserve(WORDS * self._keys.capacity)
        ts, sign, slots, dead, silent, premature = loop.advance(
            self._anti, left.ts, left.sign, left.items, self._links["links"],
            right.ts, right.sign, right.items, self._lists["lists"],
        )  # fmt: skip
        exp = self._links["links"][WORDS * slots + EXPIRY]
        columns = self._rows.take(slots)
        gone = left.items[left.sign < 0]
        self._rows.free(gone)
        self._left.release(gone)
        self._keys.forget(dead)
        self.premature += premature
        output = net(ChangeBatch(ts, exp, sign, tuple(columns)))
        if self._expiration is not None:
            self._expiration.observe(output, silent, premature, clock)
        return output

    def _apply_left(self, batch: ChangeBatch, clock: int) -> RowEvents:
        nulls = any_null([batch.columns[key] for key in self._left_keys])
        if nulls is not None and not self._anti:
            batch, nulls = batch.take(np.flatnonzero(~nulls)), None
        events, arrived, slots = self._left.apply(batch, clock)
        columns = rows_at(batch, arrived)
        low, high = hash_rows([columns[key] for key in self._left_keys], len(arrived))
        if nulls is None:
            codes, _ = self._keys.intern(low, high)
        else:
            keyed = np.flatnonzero(~nulls[arrived])
            codes = np.full(len(arrived), -1)
            codes[keyed], _ = self._keys.intern(low[keyed], high[keyed])
        self._links.reserve(WORDS * self._left.capacity)
        never = np.full(len(arrived), FOREVER)
        exp = never if self._expiration is None else own(self._expiration.stamps(batch.ts[arrived], batch.exp[arrived]))
        fill(self._links["links"], slots, codes, exp)
        self._rows.put(slots, columns)
        return events

    def _apply_right(self, batch: ChangeBatch, clock: int) -> RowEvents:
        nulls = any_null([batch.columns[key] for key in self._right_keys])
        if nulls is not None:
            batch = batch.take(np.flatnonzero(~nulls))
        codes, _ = self._keys.intern(*hash_rows([batch.columns[key] for key in self._right_keys], len(batch)))
        return self._right.apply(batch, codes, clock)

    @property
    def current_choice(self) -> tuple[str, str] | None:
        return None if self._expiration is None else self._expiration.current_choice

    @property
    def learnt(self) -> Learnt | None:
        return None if self._expiration is None else self._expiration.learnt

    def recall(self, learnt: Learnt) -> None:
        if self._expiration is not None:
            self._expiration.recall(learnt)

    @property
    def state_rows(self) -> int:
        return self._left.live + self._right.live
