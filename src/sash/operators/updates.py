"""Updates: turns the updates of a relation into changes of its rows (paper 5, 4.1).

Meaning: with a key, (row, ts, +) replaces the row of its key and (row, ts, -) deletes it, regardless of the other
columns. At one instant the `-` rows come first, and of several `+` rows of a key the latest made wins, then the largest.
Without a key, rows are a bag: `+` adds a copy, `-` deletes one. A `-` without a matching row is counted and ignored. The
input's last column is the time at which an update was made, which orders late updates that apply from the same instant;
the output is explicit and does not have that column.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.operators.kernels import updates as loop
from sash.operators.live_rows import own
from sash.operators.netting import net
from sash.state.changes import ChangeBatch
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.ordering import encode_order
from sash.state.rows import RowStore


class Updates(Operator):
    """Keeps a code for every key, or for every row without a key; by code, the key's row or the number of copies."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], key: tuple[int, ...] | None) -> None:
        (edge,) = inputs
        self._key = key
        self._codes = Interner(memory.scope("codes"))
        self._known = Arrays(memory, {"known": np.int64})
        self._rows = RowStore(memory.scope("rows"), edge.dtypes[:-1] if key is not None else ())
        self._size = memory.array("size", np.int64, 1)
        self._refused = 0

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        made = batch.columns[-1].to_numpy(zero_copy_only=False)
        rows = batch.with_columns(batch.columns[:-1])
        self._refused = 0
        if not len(rows):
            return rows
        changes = self._counted(rows) if self._key is None else self._replaced(rows, made, self._key)
        self._size[0] += int(changes.sign.sum())
        return net(changes.sorted())

    def _counted(self, rows: ChangeBatch) -> ChangeBatch:
        """Without a key; at one instant copies are added before any is deleted, so that their order does not matter."""
        rows = rows.take(np.lexsort((-rows.sign, rows.ts)))
        codes, _ = self._intern(rows.columns, len(rows))
        holds, self._refused = loop.count_rows(own(rows.sign), codes, self._known["known"])
        self._forget(codes)
        return rows.take(holds)

    def _replaced(self, rows: ChangeBatch, made: Ints, key: tuple[int, ...]) -> ChangeBatch:
        codes, _ = self._intern([rows.columns[column] for column in key], len(rows))
        order = np.lexsort((_ranks(rows, made, codes), rows.sign, made, rows.ts))
        rows, codes = rows.take(order), codes[order]
        current = self._known["known"]
        touched = np.unique(codes)
        stored = touched[current[touched] == loop.STORED]
        at, sign, references, self._refused = loop.replace_rows(own(rows.sign), codes, current)
        taken = references[references < 0]
        positions = references.copy()
        positions[references < 0] = len(rows) + np.arange(len(taken))
        index = pa.array(positions)
        both = zip(rows.columns, self._rows.take(-1 - taken), strict=True)
        changes = ChangeBatch.explicit(rows.ts[at], sign, [pa.concat_arrays(parts).take(index) for parts in both])
        self._rows.free(stored)
        kept = touched[current[touched] > 0]
        self._rows.put(kept, [column.take(pa.array(current[kept] - 1)) for column in rows.columns])
        current[kept] = loop.STORED
        self._forget(touched)
        return changes

    def _intern(self, columns: Sequence[pa.Array], rows: int) -> tuple[Ints, Ints]:
        codes, fresh = self._codes.intern(*hash_rows(columns, rows))
        self._known.reserve(self._codes.capacity)
        self._known["known"][codes[fresh]] = 0
        return codes, fresh

    def _forget(self, codes: Ints) -> None:
        """Free the codes without rows."""
        touched = np.unique(codes)
        self._codes.forget(touched[self._known["known"][touched] == 0])

    @property
    def state_rows(self) -> int:
        return int(self._size[0])

    @property
    def refused(self) -> int:
        return self._refused


def _ranks(rows: ChangeBatch, made: Ints, codes: Ints) -> Ints:
    """Ranks by all columns among the `+` rows of a key that were made at one time; 0 for the other rows."""
    ranks = np.zeros(len(rows), np.int64)
    order = np.lexsort((codes, rows.sign, made, rows.ts))
    same = np.ones(len(rows) - 1, np.bool_)
    for part in (codes, rows.sign, made, rows.ts):
        same &= part[order][1:] == part[order][:-1]
    rivals = np.unique(np.concatenate((order[1:][same], order[:-1][same])))
    if len(rivals):
        width = len(rows.columns)
        columns = [column.take(pa.array(rivals)) for column in rows.columns]
        offsets, data = encode_order(columns, [False] * width, [True] * width, len(rivals))
        encoded: npt.NDArray[np.object_] = np.empty(len(rivals), object)
        encoded[:] = [data[a:b].tobytes() for a, b in pairwise(offsets)]
        ranks[rivals[np.argsort(encoded, kind="stable")]] = np.arange(len(rivals))
    return ranks
