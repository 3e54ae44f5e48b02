"""Output modes: how much of a batch's changes is written out.

`changes` is every change at every instant; `net` nets them over the batch, which is what a table needs; `upsert` keeps
the last change of every key, `+` to write the row and `-` to delete it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from sash.operators.netting import net_all
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints

Mode = Literal["changes", "net", "upsert"]
MODES: tuple[Mode, ...] = ("changes", "net", "upsert")


def reduce_changes(changes: ChangeBatch, mode: Mode, key: tuple[int, ...] | None) -> ChangeBatch:
    """What the mode asks for of a batch's changes; `key` tells the answer's rows apart at every instant, if known."""
    match mode:
        case "changes":
            return changes
        case "net":
            return net_all(changes if key is None else changes.take(_first_and_last(changes, key)))
        case "upsert":
            assert key is not None
            return changes.take(_last(_codes(changes, key)))


def _codes(changes: ChangeBatch, key: tuple[int, ...]) -> Ints:
    """A number for every key; the empty key is that of an answer of one row."""
    if not key:
        return np.zeros(len(changes), np.int64)
    codes, _ = Interner(HeapMemory()).intern(*hash_rows([changes.columns[column] for column in key], len(changes)))
    return codes


def _last(codes: Ints) -> Ints:
    """The position of the last change of every key, in order."""
    if not len(codes):
        return codes
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes] = np.arange(len(codes))
    return np.sort(last[last >= 0])


def _first_and_last(changes: ChangeBatch, key: tuple[int, ...]) -> Ints:
    """Where a key's row before the batch is taken back, and where its row after the batch is added.

    A key has one row at a time, so its changes are `-` and `+` by turns, and those in between are each other's.
    """
    codes = _codes(changes, key)
    last = _last(codes)
    first = len(codes) - 1 - _last(codes[::-1])
    chosen = np.concatenate([first[changes.sign[first] < 0], last[changes.sign[last] > 0]])
    return np.sort(chosen)
