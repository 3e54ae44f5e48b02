"""The exact loops of SUM and AVG: integers in two halves, doubles and decimals in limbs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.operators.kernels import limbs
from sash.operators.kernels.touches import Events, Mask
from sash.state.jit import inlined, kernel
from sash.state.memory import Ints

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
_MASK = np.int64(2**32 - 1)
_UMASK = np.uint64(2**32 - 1)
_32 = np.uint64(32)
INTEGER_STRIDE = 3
DECIMAL_STRIDE = 5


@kernel
def sum_integers(
    events: Events, values: Ints, skip: Mask, cells: Ints, sums: Ints, averages: Floats, counts: Ints, fits: Mask
) -> bool:
    """By version: sum, average, count, and whether the sum fits in 64 bits. Returns whether a new sum does not."""
    overflow = False
    for index in range(len(events.first_group)):
        at = INTEGER_STRIDE * events.first_group[index]
        version = events.first_version[index]
        fits[version] = not _read_integer(cells, at, version, sums, averages, counts)
    for event in range(len(events.order)):
        position = events.order[event]
        at = INTEGER_STRIDE * events.group[position]
        if not (len(skip) and skip[position]):
            sign = events.sign[position]
            cells[at] += sign
            cells[at + 1] += sign * (values[position] & _MASK)
            cells[at + 2] += sign * (values[position] >> 32)
        version = events.version[event]
        if version >= 0:
            fits[version] = not _read_integer(cells, at, version, sums, averages, counts)
            overflow |= not fits[version]
    return overflow


@inlined
def _read_integer(cells: Ints, at: int, version: int, sums: Ints, averages: Floats, counts: Ints) -> bool:
    high = cells[at + 2] + (cells[at + 1] >> 32)
    low = cells[at + 1] & _MASK
    cells[at + 1] = low
    cells[at + 2] = high
    count = cells[at]
    counts[version] = count
    sums[version] = (high << 32) | low
    if count > 0:
        fits = -(1 << 31) <= high < (1 << 31)
        total = np.float64((high << 32) | low) if fits else np.float64(high) * 4294967296.0 + np.float64(low)
        averages[version] = total / np.float64(count)
        return not fits
    averages[version] = 0.0
    return False


@kernel
def sum_doubles(
    events: Events, bits: Words, skip: Mask, cells: Ints, low: int, width: int, sums: Floats, counts: Ints
) -> None:
    """By version: the sum, and the count."""
    stride = limbs.HEADER + width
    scratch = np.zeros(width + 1, np.uint64)
    exact = scratch.view(np.float64)
    weight = limbs.weights(low, width)
    for index in range(len(events.first_group)):
        at = stride * events.first_group[index]
        version = events.first_version[index]
        sums[version] = _read_double(cells, at, low, width, scratch, weight, exact)
        counts[version] = cells[at]
    for event in range(len(events.order)):
        position = events.order[event]
        at = stride * events.group[position]
        if not (len(skip) and skip[position]):
            sign = int(events.sign[position])
            cells[at] += sign
            if limbs.exponent_of(bits[position]) == 2047:
                count_special(bits[position], sign, cells, at)
            else:
                limbs.add_double(bits[position], sign, cells, at + limbs.HEADER, low)
        version = events.version[event]
        if version >= 0:
            sums[version] = _read_double(cells, at, low, width, scratch, weight, exact)
            counts[version] = cells[at]


@kernel
def count_special(bits: np.uint64, sign: int, cells: Ints, at: int) -> None:
    """Count an infinity or a NaN."""
    if bits & np.uint64(2**52 - 1) != np.uint64(0):
        cells[at + limbs.NOT_A_NUMBER] += sign
    elif bits >> np.uint64(63) != np.uint64(0):
        cells[at + limbs.MINUS_INFINITY] += sign
    else:
        cells[at + limbs.PLUS_INFINITY] += sign


@inlined
def _read_double(cells: Ints, at: int, low: int, width: int, scratch: Words, weight: Floats, exact: Floats) -> float:
    if cells[at + limbs.COUNT] == 0:
        # The sum is zero; deferred carries cancel out.
        for index in range(width):
            cells[at + limbs.HEADER + index] = 0
        return 0.0
    plus, minus = cells[at + limbs.PLUS_INFINITY], cells[at + limbs.MINUS_INFINITY]
    total = limbs.round_fast(cells, at + limbs.HEADER, width, weight) if len(weight) else -1.0
    if total < 0.0:
        scratch[0] = limbs.round_sum(cells, at + limbs.HEADER, width, low, scratch)
        total = exact[0]
    if cells[at + limbs.NOT_A_NUMBER] > 0 or (plus > 0 and minus > 0):
        return np.nan
    if plus > 0:
        return np.inf
    return -np.inf if minus > 0 else total


@kernel
def sum_decimals(
    events: Events, low: Words, high: Words, skip: Mask, cells: Ints, factor: int, limit: Words, average: bool,
    out: Words, counts: Ints, fits: Mask,
) -> bool:  # fmt: skip
    """By version: sum, or `factor` times the average rounded half up, as pairs of words in `out`; the count, and whether the
    result is below `limit` (low word, high word).

    Returns whether a new result is not.
    """
    scratch = np.zeros(8, np.uint64)
    overflow = False
    for index in range(len(events.first_group)):
        at = DECIMAL_STRIDE * events.first_group[index]
        version = events.first_version[index]
        counts[version] = cells[at]
        fits[version] = not _read_decimal(cells, at, factor, limit, average, scratch, out, version)
    for event in range(len(events.order)):
        position = events.order[event]
        at = DECIMAL_STRIDE * events.group[position]
        if not (len(skip) and skip[position]):
            sign = int(events.sign[position])
            cells[at] += sign
            cells[at + 1] += sign * np.int64(low[position] & _UMASK)
            cells[at + 2] += sign * np.int64(low[position] >> _32)
            cells[at + 3] += sign * np.int64(high[position] & _UMASK)
            cells[at + 4] += sign * (np.int64(high[position]) >> 32)
        version = events.version[event]
        if version >= 0:
            counts[version] = cells[at]
            fits[version] = not _read_decimal(cells, at, factor, limit, average, scratch, out, version)
            overflow |= not fits[version]
    return overflow


@kernel
def _read_decimal(
    cells: Ints, at: int, factor: int, limit: Words, average: bool, scratch: Words, out: Words, version: int
) -> bool:
    carry = np.int64(0)
    for index in range(1, 4):
        limb = cells[at + index] + carry
        carry = limb >> 32
        cells[at + index] = limb & _MASK
    cells[at + 4] += carry
    top = cells[at + 4]
    negative = top < 0
    more = np.uint64(1)
    for index in range(3):
        limb = np.uint64(cells[at + 1 + index])
        if negative:
            limb = (_UMASK - limb) + more
            more = limb >> _32
            limb &= _UMASK
        scratch[index] = limb
    above = np.uint64(~top) + more if negative else np.uint64(top)
    scratch[3] = above & _UMASK
    scratch[4] = above >> _32
    scratch[5] = np.uint64(0)
    if average and cells[at] > 0:
        _divide(scratch, np.uint64(factor), np.uint64(cells[at]))
    low = scratch[0] | (scratch[1] << _32)
    high = scratch[2] | (scratch[3] << _32)
    overflow = bool(scratch[4] != np.uint64(0) or scratch[5] != np.uint64(0))
    overflow |= bool(high > limit[1] or (high == limit[1] and low >= limit[0]))
    if negative:
        low = ~low + np.uint64(1)
        high = ~high + (np.uint64(1) if low == np.uint64(0) else np.uint64(0))
    out[2 * version] = low
    out[2 * version + 1] = high
    return overflow


@kernel
def _divide(words: Words, factor: np.uint64, count: np.uint64) -> None:
    """words * factor / count, rounded half up; factor and count are below 2^31."""
    carry = np.uint64(0)
    for index in range(6):
        product = words[index] * factor + carry
        words[index] = product & _UMASK
        carry = product >> _32
    rest = np.uint64(0)
    for step in range(6):
        index = 5 - step
        part = (rest << _32) | words[index]
        words[index] = part // count
        rest = part % count
    if np.uint64(2) * rest >= count:
        index = 0
        while True:
            words[index] += np.uint64(1)
            if words[index] <= _UMASK:
                break
            words[index] = np.uint64(0)
            index += 1
