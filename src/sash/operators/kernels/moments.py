"""The loop of moments: exact sums of products of powers of x and y, and polynomials of these sums, rounded once.

Every sum is a row of limbs (`limbs.py`), so a removal exactly reverses an arrival. A limb i of a sum of products of order k
weighs 2^(32 i - k BIAS). Which products are summed and which polynomials are read is data: see `Products` and `Terms`.
"""

from __future__ import annotations

from typing import NamedTuple

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
RESULT, COEFFICIENT, COUNTS, FACTORS = 0, 1, 2, 3
_LONGEST = 12


class Products(NamedTuple):
    """The sums: their powers of x and of y, their cells one after the other, and where each begins, its lowest limb and
    its number of limbs. The first is the sum of x; the second, if there is a y, that of y."""

    x: Ints
    y: Ints
    cells: tuple[Ints, ...]
    low: Ints
    width: Ints


class Terms(NamedTuple):
    """The terms of the polynomials, a row each: RESULT, COEFFICIENT, power of the number of rows (COUNTS), and from
    FACTORS on the sums that are multiplied (-1: none). `of_x` and `of_y` tell by result whether it depends on x and y."""

    rows: npt.NDArray[np.int64]
    of_x: Mask
    of_y: Mask


@kernel
def sum_products(
    events: Events, x: Words, y: Words, skip: Mask, products: Products, terms: Terms,
    mantissas: Floats, exponents: Ints, counts: Ints,
) -> None:  # fmt: skip
    """By result and version: the polynomial as mantissa * 2^exponent (NaN if an argument is not finite); and the count.

    The exponents do not contain the bias of the polynomial's order.
    """
    versions = len(counts)
    base, size = _extents(products, terms, len(terms.of_x))
    largest = np.int64(1)
    for length in size:
        largest = max(largest, length)
    total = np.zeros(largest, np.int64)
    scratch = np.zeros(largest + 1, np.uint64)
    factor, product = np.zeros(largest + 2, np.uint64), np.zeros(largest + 2, np.uint64)
    most = np.int64(1)
    for width in products.width:
        most = max(most, width + 1)
    settled, negative = np.zeros((len(products.x), most), np.uint64), np.zeros(len(products.x), np.bool_)
    power = np.zeros(_LONGEST, np.uint64)
    for index in range(len(events.first_group) + len(events.order)):
        if index < len(events.first_group):
            code, version = events.first_group[index], events.first_version[index]
        else:
            event = index - len(events.first_group)
            position = events.order[event]
            code, version = events.group[position], events.version[event]
            if not (len(skip) and skip[position]):
                _add(
                    x[position],
                    y[position] if len(y) else np.uint64(0),
                    int(events.sign[position]),
                    code,
                    products,
                    power,
                )
        if version < 0:
            continue
        count = products.cells[0][(limbs.HEADER + products.width[0]) * code + limbs.COUNT]
        counts[version] = count
        for one in range(len(products.x)):
            at = (limbs.HEADER + products.width[one]) * code + limbs.HEADER
            negative[one] = limbs.settle(products.cells[one], at, products.width[one], settled[one])
        odd_x = _is_special(products, 0, code)
        odd_y = len(y) > 0 and _is_special(products, 1, code)
        for result in range(len(terms.of_x)):
            to = result * versions + version
            if (odd_x and terms.of_x[result]) or (odd_y and terms.of_y[result]):
                mantissas[to] = np.nan
                exponents[to] = 0
                continue
            total[:] = 0
            for term in range(len(terms.rows)):
                if terms.rows[term, RESULT] == result:
                    _add_term(
                        terms.rows[term], count, products, settled, negative, base[result], total, factor, product
                    )
            below = limbs.settle(total, 0, size[result], scratch)
            mantissa, exponent = limbs.leading(scratch, size[result] + 1)
            mantissas[to] = -np.float64(mantissa) if below else np.float64(mantissa)
            exponents[to] = 32 * base[result] + exponent


@kernel
def _extents(products: Products, terms: Terms, results: int) -> tuple[Ints, Ints]:
    """By result: its lowest limb, and its number of limbs."""
    base, top = np.full(results, 1 << 40, np.int64), np.full(results, -(1 << 40), np.int64)
    for term in range(len(terms.rows)):
        result = terms.rows[term, RESULT]
        low, high = np.int64(0), 2 * terms.rows[term, COUNTS] + 1
        for factor in terms.rows[term, FACTORS:]:
            if factor >= 0:
                low += products.low[factor]
                high += products.low[factor] + products.width[factor] + 1
        base[result] = min(base[result], low)
        top[result] = max(top[result], high)
    return base, top - base + 1


@kernel
def _is_special(products: Products, one: int, code: int) -> bool:
    """Whether infinities or NaNs are among the values."""
    at = (limbs.HEADER + products.width[one]) * code
    cells = products.cells[one]
    return bool(cells[at + limbs.PLUS_INFINITY] + cells[at + limbs.MINUS_INFINITY] + cells[at + limbs.NOT_A_NUMBER] > 0)


@kernel
def _add(x: np.uint64, y: np.uint64, sign: int, code: int, products: Products, power: Words) -> None:
    """Add `sign` times each product of powers of x and y."""
    special_x, special_y = limbs.exponent_of(x) == 2047, limbs.exponent_of(y) == 2047
    products.cells[0][(limbs.HEADER + products.width[0]) * code] += sign
    if special_x:
        count_special(x, sign, products.cells[0], (limbs.HEADER + products.width[0]) * code)
    if special_y:
        count_special(y, sign, products.cells[1], (limbs.HEADER + products.width[1]) * code)
    for one in range(len(products.x)):
        times_x, times_y = products.x[one], products.y[one]
        if (times_x > 0 and (special_x or limbs.mantissa_of(x) == np.uint64(0))) or (
            times_y > 0 and (special_y or limbs.mantissa_of(y) == np.uint64(0))
        ):
            continue
        power[0] = np.uint64(1)
        length = 1
        signed = sign
        for step in range(times_x + times_y):
            value = x if step < times_x else y
            mantissa = limbs.mantissa_of(value)
            length = _times(power, length, mantissa & _UMASK, mantissa >> _32)
            if value >> np.uint64(63) != np.uint64(0):
                signed = -signed
        position = np.int64(0)
        if times_x > 0:
            position += times_x * limbs.place_of(x)
        if times_y > 0:
            position += times_y * limbs.place_of(y)
        shift = np.uint64(position & 31)
        to = (limbs.HEADER + products.width[one]) * code + limbs.HEADER + (position >> 5) - products.low[one]
        cells = products.cells[one]
        carry = np.uint64(0)
        for limb in range(length):
            moved = (power[limb] << shift) | carry
            cells[to] += signed * np.int64(moved & _UMASK)
            carry = moved >> _32
            to += 1
        if carry != np.uint64(0):
            cells[to] += signed * np.int64(carry)


@kernel
def _times(number: Words, length: int, low: np.uint64, high: np.uint64) -> int:
    """Multiply the number by low + 2^32 high, in place; returns its number of limbs. Both are below 2^32."""
    number[length] = np.uint64(0)
    number[length + 1] = np.uint64(0)
    before = np.uint64(0)
    carry = np.uint64(0)
    for index in range(length + 2):
        limb = number[index] if index < length else np.uint64(0)
        one = limb * low
        two = before * high
        part = (one & _UMASK) + (two & _UMASK) + (carry & _UMASK)
        number[index] = part & _UMASK
        carry = (carry >> _32) + (one >> _32) + (two >> _32) + (part >> _32)
        before = limb
    length += 2
    while length > 1 and number[length - 1] == np.uint64(0):
        length -= 1
    return length


@kernel
def _add_term(
    term: Ints, count: int, products: Products, settled: npt.NDArray[np.uint64], negative: Mask, base: int,
    total: Ints, factor: Words, product: Words,
) -> None:  # fmt: skip
    """Add one term, a coefficient times a power of the count times sums, to the total, whose lowest limb is `base`."""
    factor[0] = np.uint64(1)
    length = 1
    sign = term[COEFFICIENT]
    low = np.int64(0)
    for _ in range(term[COUNTS]):
        length = _times(factor, length, np.uint64(count) & _UMASK, np.uint64(count) >> _32)
    for one in term[FACTORS:]:
        if one >= 0:
            length = _multiply(factor, length, settled[one], products.width[one] + 1, product)
            low += products.low[one]
            if negative[one]:
                sign = -sign
    for index in range(length):
        total[low - base + index] += sign * np.int64(factor[index])


@kernel
def _multiply(number: Words, length: int, other: Words, size: int, scratch: Words) -> int:
    """Multiply the number by another one; returns its number of limbs."""
    for index in range(length + size):
        scratch[index] = np.uint64(0)
    for one in range(length):
        if number[one] == np.uint64(0):
            continue
        carry = np.uint64(0)
        for two in range(size):
            part = number[one] * other[two] + scratch[one + two] + carry
            scratch[one + two] = part & _UMASK
            carry = part >> _32
        scratch[one + size] = carry
    for index in range(length + size):
        number[index] = scratch[index]
    return length + size
