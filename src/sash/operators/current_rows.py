"""The rows that a stream of changes leaves: netted from time to time, so that memory depends on their number."""

from __future__ import annotations

import numpy as np

from sash.operators.netting import net_all
from sash.state.changes import ChangeBatch, concat
from sash.time import FOREVER

_PENDING = 1 << 20


class CurrentRows:
    """Adds up changes of one edge. On a stamped edge, rows stay until a time that `rows` is given."""

    def __init__(self) -> None:
        self._held: list[ChangeBatch] = []
        self._pending = 0
        self._netted = 0

    def add(self, changes: ChangeBatch) -> None:
        """Add changes."""
        if len(changes):
            self._held.append(changes)
            self._pending += len(changes)
            if self._pending > max(_PENDING, self._netted):
                self._net()

    def rows(self, clock: int | None = None) -> ChangeBatch | None:
        """The rows that are left, without those that expired before the clock; None if there were no changes."""
        self._net()
        if not self._held:
            return None
        (rows,) = self._held
        if clock is not None and len(rows) and (rows.exp != FOREVER).any():
            rows = rows.take(np.flatnonzero(rows.exp >= clock))
        return rows.sorted()

    def _net(self) -> None:
        if self._held and self._pending:
            rows = concat(self._held)
            self._held = [rows if (rows.sign > 0).all() else net_all(rows)]
            self._netted, self._pending = len(self._held[0]), 0
