"""The loop of BIT_AND, BIT_OR and BIT_XOR: how many values of a group have each bit set."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.touches import Events, Mask
from sash.state.jit import kernel
from sash.state.memory import Ints

STRIDE = 65


@kernel
def count_bits(
    events: Events, values: Ints, skip: Mask, cells: Ints, ands: Ints, ors: Ints, xors: Ints, counts: Ints
) -> None:
    """By version: the three results, and the number of values. A group has that number and one per bit."""
    for index in range(len(events.first_group)):
        _read(cells, STRIDE * events.first_group[index], events.first_version[index], ands, ors, xors, counts)
    for event in range(len(events.order)):
        position = events.order[event]
        at = STRIDE * events.group[position]
        if not (len(skip) and skip[position]):
            sign = events.sign[position]
            cells[at] += sign
            word = np.uint64(values[position])
            bit = 1
            while word != np.uint64(0):
                if word & np.uint64(1) != np.uint64(0):
                    cells[at + bit] += sign
                word >>= np.uint64(1)
                bit += 1
        if events.version[event] >= 0:
            _read(cells, at, events.version[event], ands, ors, xors, counts)


@kernel
def _read(cells: Ints, at: int, version: int, ands: Ints, ors: Ints, xors: Ints, counts: Ints) -> None:
    count = cells[at]
    every, some, odd = np.uint64(0), np.uint64(0), np.uint64(0)
    for bit in range(64):
        number = cells[at + 1 + bit]
        mask = np.uint64(1) << np.uint64(bit)
        if number == count:
            every |= mask
        if number > 0:
            some |= mask
        if number & 1:
            odd |= mask
    ands[version] = np.int64(every)
    ors[version] = np.int64(some)
    xors[version] = np.int64(odd)
    counts[version] = count
