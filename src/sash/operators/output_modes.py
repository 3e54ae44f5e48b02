"""Output modes: which of a batch's changes are written.

`changes` writes every change at every instant. `net` writes the net changes of the batch, as a table needs them. `upsert`
writes the last change of every key: `+` to write the row, `-` to delete it.
"""

from __future__ import annotations

import numpy as np

from sash.operators.netting import net_all
from sash.plan.options import Mode
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints


def reduce_changes(changes: ChangeBatch, mode: Mode, key: tuple[int, ...] | None) -> ChangeBatch:
    """Return the changes that the mode writes; `key` is unique among the answer's rows at every instant, if it is known."""
    match mode:
        case "changes":
            return changes
        case "net":
            return net_all(changes if key is None else changes.take(_first_and_last(changes, key)))
        case "upsert":
            assert key is not None
            return changes.take(_last(_codes(changes, key)))


def _codes(changes: ChangeBatch, key: tuple[int, ...]) -> Ints:
    """Number the keys; an answer of at most one row has the empty key."""
    if not key:
        return np.zeros(len(changes), np.int64)
    codes, _ = Interner(HeapMemory()).intern(*hash_rows([changes.columns[column] for column in key], len(changes)))
    return codes


def _last(codes: Ints) -> Ints:
    """Return the positions of the last change of every key, in order."""
    if not len(codes):
        return codes
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes] = np.arange(len(codes))
    return np.sort(last[last >= 0])


def _first_and_last(changes: ChangeBatch, key: tuple[int, ...]) -> Ints:
    """Return the positions where a key's row of before the batch is retracted, and where its row of after it is added.

    A key has one row at a time, so its changes alternate between `-` and `+`, and those in between cancel out.
    """
    codes = _codes(changes, key)
    last = _last(codes)
    first = len(codes) - 1 - _last(codes[::-1])
    chosen = np.concatenate([first[changes.sign[first] < 0], last[changes.sign[last] > 0]])
    return np.sort(chosen)
