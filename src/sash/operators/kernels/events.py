"""Merges changes and expirations of one input into events in time order, ends before arrivals at each instant."""

from __future__ import annotations

import numpy as np

from sash.state.changes import Signs
from sash.state.jit import kernel
from sash.state.memory import Ints


@kernel
def interleave(ts: Ints, sign: Signs, changed: Ints, ends: Ints, gone: Ints) -> tuple[Ints, Signs, Ints]:
    """Merge changes (time, sign, slot or code) with ends (time, slot or code): (times, signs, slots or codes)."""
    n, m = len(ts), len(ends)
    times = np.empty(n + m, np.int64)
    signs = np.empty(n + m, np.int8)
    items = np.empty(n + m, np.int64)
    i = j = 0
    for index in range(n + m):
        if j < m and (i >= n or ends[j] <= ts[i]):
            times[index], signs[index], items[index] = ends[j], -1, gone[j]
            j += 1
        else:
            times[index], signs[index], items[index] = ts[i], sign[i], changed[i]
            i += 1
    return times, signs, items


@kernel
def taken_back(ts: Ints, sign: Signs, input_ts: Ints, input_sign: Signs) -> int:
    """The number of `-` rows at instants at which no row of the input ends; both are sorted, ends first."""
    count = position = 0
    for index in range(len(ts)):
        if sign[index] > 0:
            continue
        while position < len(input_ts) and input_ts[position] < ts[index]:
            position += 1
        if position == len(input_ts) or input_ts[position] > ts[index] or input_sign[position] > 0:
            count += 1
    return count
