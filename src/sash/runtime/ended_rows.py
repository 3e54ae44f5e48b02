"""Rows with their ends: the retractions of an explicit edge paired with the rows that they end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.operators.live_rows import own
from sash.state.changes import ChangeBatch, Signs
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.jit import kernel
from sash.state.memory import HeapMemory, Ints
from sash.time import FOREVER


def with_ends(changes: ChangeBatch) -> ChangeBatch:
    """The `+` rows of sorted changes, each with the time of the `-` row that ends it as its end, the oldest of equal ones first.

    A row that ends at the instant at which it came is left out, and so is a `-` row without a `+` row.
    """
    if (changes.sign > 0).all():
        return changes
    codes, _ = Interner(HeapMemory()).intern(*map(own, hash_rows(changes.columns, len(changes), exact=True)))
    ends, kept = _pair(own(changes.ts), own(changes.exp), own(changes.sign), codes, int(codes.max()) + 1)
    return ChangeBatch(changes.ts, ends, changes.sign, changes.columns).take(np.flatnonzero(kept))


@kernel
def _pair(ts: Ints, exp: Ints, sign: Signs, codes: Ints, values: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    ends = exp.copy()
    kept = np.zeros(len(ts), np.bool_)
    first, last = np.full(values, -1), np.full(values, -1)
    following = np.full(len(ts), -1)
    for row in range(len(ts)):
        code = codes[row]
        if sign[row] > 0:
            kept[row] = True
            if exp[row] != FOREVER:
                continue
            if first[code] < 0:
                first[code] = row
            else:
                following[last[code]] = row
            last[code] = row
        elif first[code] >= 0:
            ended = first[code]
            first[code] = following[ended]
            ends[ended] = ts[row]
            kept[ended] = ts[ended] != ts[row]
    return ends, kept
