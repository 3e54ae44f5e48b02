"""The loop of variance: n * sum(x^2) - sum(x)^2, in exact arithmetic, rounded once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.operators.kernels import limbs
from sash.operators.kernels.sums import count_special
from sash.operators.kernels.touches import Events, Mask
from sash.state.jit import kernel
from sash.state.memory import Ints

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
_UMASK = np.uint64(2**32 - 1)
_32 = np.uint64(32)


@kernel
def spread(
    events: Events, bits: Words, skip: Mask,
    cells: Ints, low: int, width: int, squares: Ints, squares_low: int, squares_width: int,
    mantissas: Floats, exponents: Ints, counts: Ints,
) -> None:  # fmt: skip
    """By version: n * sum(x^2) - sum(x)^2 as mantissa * 2^exponent (NaN if an x is not finite), and n."""
    bottom = min(2 * low, squares_low)
    size = max(2 * (low + width + 1), squares_low + squares_width + 2) - bottom + 1
    sum_limbs = np.zeros(width + 1, np.uint64)
    square_limbs = np.zeros(squares_width + 1, np.uint64)
    difference = np.zeros(size, np.int64)
    scratch = np.zeros(size + 1, np.uint64)
    for index in range(len(events.first_group) + len(events.order)):
        if index < len(events.first_group):
            code = events.first_group[index]
            version = events.first_version[index]
        else:
            event = index - len(events.first_group)
            position = events.order[event]
            code = events.group[position]
            version = events.version[event]
            if not (len(skip) and skip[position]):
                sign = int(events.sign[position])
                at = (limbs.HEADER + width) * code
                cells[at] += sign
                if limbs.exponent_of(bits[position]) == 2047:
                    count_special(bits[position], sign, cells, at)
                else:
                    limbs.add_double(bits[position], sign, cells, at + limbs.HEADER, low)
                    there = (limbs.HEADER + squares_width) * code + limbs.HEADER
                    limbs.add_square(bits[position], sign, squares, there, squares_low)
        if version < 0:
            continue
        at = (limbs.HEADER + width) * code
        limbs.settle(cells, at + limbs.HEADER, width, sum_limbs)
        limbs.settle(squares, (limbs.HEADER + squares_width) * code + limbs.HEADER, squares_width, square_limbs)
        count = cells[at + limbs.COUNT]
        counts[version] = count
        exponents[version] = 32 * bottom
        if cells[at + limbs.PLUS_INFINITY] + cells[at + limbs.MINUS_INFINITY] + cells[at + limbs.NOT_A_NUMBER] > 0:
            mantissas[version] = np.nan
            continue
        _subtract(np.uint64(count), square_limbs, squares_low - bottom, sum_limbs, 2 * low - bottom, difference)
        limbs.settle(difference, 0, size, scratch)
        mantissa, exponent = limbs.leading(scratch, size + 1)
        mantissas[version] = np.float64(mantissa)
        exponents[version] += exponent


@kernel
def _subtract(count: np.uint64, squares: Words, squares_at: int, sums: Words, sums_at: int, result: Ints) -> None:
    """count * squares - sums^2, limb by limb, with deferred carries."""
    for index in range(len(result)):
        result[index] = 0
    for index in range(len(squares)):
        product = count * squares[index]
        result[squares_at + index] += np.int64(product & _UMASK)
        result[squares_at + index + 1] += np.int64(product >> _32)
    for one in range(len(sums)):
        if sums[one] == np.uint64(0):
            continue
        for two in range(len(sums)):
            product = sums[one] * sums[two]
            result[sums_at + one + two] -= np.int64(product & _UMASK)
            result[sums_at + one + two + 1] -= np.int64(product >> _32)
