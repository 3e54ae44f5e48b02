"""The loops over a relation's updates, in the order in which they take effect."""

from __future__ import annotations

import numpy as np

from sash.state.changes import Signs
from sash.state.jit import kernel
from sash.state.memory import Ints

ABSENT, STORED = 0, -1
"""Values of `current` for a key: it has no row, or the one in the store; otherwise the position of its row, plus one."""


@kernel
def replace_rows(sign: Signs, codes: Ints, current: Ints) -> tuple[Ints, Signs, Ints, int]:
    """Updates by key: a `+` retracts its key's row, if there is one, and adds its own; a `-` only retracts.

    Returns (positions of the updates, signs, references) and the number of `-` without a row. A reference is the position of
    a row among the updates, or -1 - code for the row in the store.
    """
    size = 2 * len(sign)
    at, signs, references = np.empty(size, np.int64), np.empty(size, np.int8), np.empty(size, np.int64)
    count = refused = 0
    for index in range(len(sign)):
        code = codes[index]
        if current[code] != ABSENT:
            at[count], signs[count] = index, -1
            references[count] = -1 - code if current[code] == STORED else current[code] - 1
            count += 1
        elif sign[index] < 0:
            refused += 1
        current[code] = ABSENT
        if sign[index] > 0:
            at[count], signs[count], references[count] = index, 1, index
            count += 1
            current[code] = index + 1
    return at[:count], signs[:count], references[:count], refused


@kernel
def count_rows(sign: Signs, codes: Ints, copies: Ints) -> tuple[Ints, int]:
    """Updates of a bag: the mask of valid updates, and the number of `-` without a copy to delete."""
    holds = np.empty(len(sign), np.int64)
    count = refused = 0
    for index in range(len(sign)):
        code = codes[index]
        if sign[index] < 0 and copies[code] == 0:
            refused += 1
            continue
        copies[code] += sign[index]
        holds[count] = index
        count += 1
    return holds[:count], refused
