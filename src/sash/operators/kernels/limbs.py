"""Exact sums of doubles: a number is a row of limbs in base 2^32, so subtraction exactly reverses addition.

A superaccumulator (Kulisch; Neal, "Fast exact summation using small and large superaccumulators", 2015) that keeps only
the limbs its data need. Limb i has weight 2^(32 i - BIAS); limbs are int64, and carries are deferred until the number is
read, when all but the top limb are normalized to [0, 2^32). Reading rounds once, to the nearest double, ties to even.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.jit import inlined, kernel
from sash.state.memory import Ints

Words = npt.NDArray[np.uint64]
BIAS = 1088
HEADER = 4
COUNT, PLUS_INFINITY, MINUS_INFINITY, NOT_A_NUMBER = 0, 1, 2, 3
_MASK = np.int64(2**32 - 1)
_UMASK = np.uint64(2**32 - 1)
_FRACTION = np.uint64(2**52 - 1)
_HIDDEN = np.uint64(2**52)
_32 = np.uint64(32)


@inlined
def exponent_of(bits: np.uint64) -> np.int64:
    """The biased exponent of a double, 2047 for infinities and NaN."""
    return np.int64((bits >> np.uint64(52)) & np.uint64(0x7FF))


@inlined
def mantissa_of(bits: np.uint64) -> np.uint64:
    """The integer mantissa of a finite double."""
    fraction = bits & _FRACTION
    return fraction | _HIDDEN if exponent_of(bits) > 0 else fraction


@inlined
def place_of(bits: np.uint64) -> np.int64:
    """The bit position of the mantissa's last bit above 2^-BIAS: mantissa * 2^(place - BIAS) is the magnitude."""
    exponent = exponent_of(bits)
    return (exponent if exponent > 0 else np.int64(1)) + np.int64(BIAS - 1075)


@inlined
def add_double(bits: np.uint64, sign: int, cells: Ints, at: int, low: int) -> None:
    """Add `sign` times a finite double to the number whose limb `low` is at cells[at]."""
    mantissa = mantissa_of(bits)
    if mantissa == np.uint64(0):
        return
    if bits >> np.uint64(63) != np.uint64(0):
        sign = -sign
    position = place_of(bits)
    shift = np.uint64(position & 31)
    to = at + (position >> 5) - low
    cells[to] += sign * np.int64((mantissa << shift) & _UMASK)
    cells[to + 1] += sign * np.int64((mantissa >> (_32 - shift)) & _UMASK)
    cells[to + 2] += sign * np.int64((mantissa >> _32) >> (_32 - shift))


@kernel
def add_square(bits: np.uint64, sign: int, cells: Ints, at: int, low: int) -> None:
    """Add `sign` times the square of a finite double; in squares limb i weighs 2^(32 i - 2 BIAS)."""
    mantissa = mantissa_of(bits)
    if mantissa == np.uint64(0):
        return
    a, b = mantissa >> _32, mantissa & _UMASK
    # mantissa^2 = a^2 2^64 + 2ab 2^32 + b^2 as four limbs; 2ab < 2^54 and a^2 < 2^42.
    part = b * b
    first = part & _UMASK
    part = np.uint64(2) * a * b + (part >> _32)
    second = part & _UMASK
    part = a * a + (part >> _32)
    third, fourth = part & _UMASK, part >> _32
    position = 2 * place_of(bits)
    shift = np.uint64(position & 31)
    to = at + (position >> 5) - low
    carry = np.uint64(0)
    for limb in (first, second, third, fourth):
        moved = (limb << shift) | carry
        cells[to] += sign * np.int64(moved & _UMASK)
        carry = moved >> _32
        to += 1
    cells[to] += sign * np.int64(carry)


@kernel
def span(bits: Words, skip: npt.NDArray[np.bool_]) -> tuple[np.int64, np.int64]:
    """The smallest and largest places of all finite non-zero values; (0, -1) if there are none."""
    smallest, largest = np.int64(1 << 20), np.int64(-1)
    for index in range(len(bits)):
        if len(skip) and skip[index]:
            continue
        if exponent_of(bits[index]) != 2047 and mantissa_of(bits[index]) != np.uint64(0):
            position = place_of(bits[index])
            smallest = min(smallest, position)
            largest = max(largest, position)
    return (smallest, largest) if largest >= 0 else (np.int64(0), largest)


@kernel
def settle(cells: Ints, at: int, width: int, magnitude: Words) -> bool:
    """Propagate carries in place, and write the magnitude's width + 1 limbs; returns whether the number is negative."""
    if width == 0:
        magnitude[0] = np.uint64(0)
        return False
    carry = np.int64(0)
    for index in range(width - 1):
        limb = cells[at + index] + carry
        carry = limb >> 32
        limb &= _MASK
        cells[at + index] = limb
        magnitude[index] = np.uint64(limb)
    top = cells[at + width - 1] + carry
    cells[at + width - 1] = top
    negative = bool(top < 0)
    above = np.uint64(top)
    if negative:
        more = np.uint64(1)
        for index in range(width - 1):
            limb = (_UMASK - magnitude[index]) + more
            more = limb >> _32
            magnitude[index] = limb & _UMASK
        above = np.uint64(~top) + more
    magnitude[width - 1] = above & _UMASK
    magnitude[width] = above >> _32
    return negative


@kernel
def leading(magnitude: Words, count: int) -> tuple[np.uint64, np.int64]:
    """The number rounded to 53 bits: (integer in [2^52, 2^53), exponent above limb 0's weight); (0, 0) for zero."""
    top = count - 1
    while top >= 0 and magnitude[top] == np.uint64(0):
        top -= 1
    if top < 0:
        return np.uint64(0), np.int64(0)
    zeros = np.uint64(0)
    probe = magnitude[top]
    for step in (16, 8, 4, 2, 1):
        if probe < (np.uint64(1) << np.uint64(32 - step)):
            probe <<= np.uint64(step)
            zeros += np.uint64(step)
    second = magnitude[top - 1] if top >= 1 else np.uint64(0)
    third = magnitude[top - 2] if top >= 2 else np.uint64(0)
    word = (((magnitude[top] << _32) | second) << zeros) | (third >> (_32 - zeros))
    rest = (third << zeros) & _UMASK
    below = top - 3
    while rest == np.uint64(0) and below >= 0:
        rest = magnitude[below]
        below -= 1
    result = word >> np.uint64(11)
    dropped = word & np.uint64(0x7FF)
    half = np.uint64(0x400)
    if dropped > half or (dropped == half and (rest != np.uint64(0) or (result & np.uint64(1)) != np.uint64(0))):
        result += np.uint64(1)
    exponent = np.int64(32 * (top - 1) + 11) - np.int64(zeros)
    if result > _FRACTION + _HIDDEN:
        result >>= np.uint64(1)
        exponent += 1
    return result, exponent


@kernel
def to_bits(negative: bool, mantissa: np.uint64, exponent: np.int64) -> np.uint64:
    """The double mantissa * 2^exponent, as bits; infinity if it is too large. The mantissa is 0 or has 53 bits."""
    if mantissa == np.uint64(0):
        return np.uint64(0)
    sign = np.uint64(1 << 63) if negative else np.uint64(0)
    field = exponent + 1075
    if field >= 2047:
        return sign | np.uint64(0x7FF0000000000000)
    if field <= 0:
        # A sum of doubles is a multiple of the smallest one, so the bits shifted out here are zero.
        return sign | (mantissa >> np.uint64(1 - field if field > -62 else 63))
    return sign | (np.uint64(field) << np.uint64(52)) | (mantissa & _FRACTION)


@kernel
def round_sum(cells: Ints, at: int, width: int, low: int, scratch: Words) -> np.uint64:
    """The number, carried in place, as the bits of the nearest double."""
    negative = settle(cells, at, width, scratch)
    mantissa, exponent = leading(scratch, width + 1)
    return to_bits(negative, mantissa, exponent + 32 * low - BIAS)


@kernel
def weights(low: int, width: int) -> npt.NDArray[np.float64]:
    """The factors of `round_fast` per top limb; empty if the limbs are close to the limits of a double."""
    if 32 * (low - 1) - BIAS < -900 or 32 * (low + width) - BIAS > 900:
        return np.empty(0, np.float64)
    result = np.empty(width + 1, np.float64)
    for index in range(width + 1):
        result[index] = 2.0 ** (32 * (low + index - 1) - BIAS)
    return result


@inlined
def round_fast(cells: Ints, at: int, width: int, weight: npt.NDArray[np.float64]) -> float:
    """The number, carried in place, as the nearest double if it is not negative and its top limb not full, else -1.

    The leading 55 to 64 bits, the last of them set if any lower bit is, round to the same 53 bits as the whole number.
    """
    carry = np.int64(0)
    for index in range(at, at + width - 1):
        limb = cells[index] + carry
        carry = limb >> 32
        cells[index] = limb & _MASK
    cells[at + width - 1] += carry
    top = width - 1
    if not 0 <= cells[at + top] <= _MASK:
        return -1.0
    while top > 0 and cells[at + top] == 0:
        top -= 1
    first = cells[at + top]
    second = cells[at + top - 1] if top >= 1 else np.int64(0)
    third = cells[at + top - 2] if top >= 2 else np.int64(0)
    if first >= 1 << 22:
        shift, scale = 0, 1.0
    elif first >= 1 << 12:
        shift, scale = 10, 2.0**-10
    elif first >= 1 << 2:
        shift, scale = 20, 2.0**-20
    else:
        shift, scale = 30, 2.0**-30
    rest = (third << shift) & _MASK
    below = at + top - 3
    while rest == 0 and below >= at:
        rest = cells[below]
        below -= 1
    word = np.uint64((((first << 32) | second) << shift) | (third >> (32 - shift)))
    if rest != 0:
        word |= np.uint64(1)
    return float(np.float64(word) * (scale * weight[top]))
