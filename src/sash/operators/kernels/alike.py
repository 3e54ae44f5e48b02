"""The loops of alike queries: constants are sorted, so the queries that have a row are found by binary search."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.jit import kernel
from sash.state.memory import Ints


@kernel
def search(
    codes: Ints, values: Ints, starts: Ints, sorted_constants: Ints, side: int, below: bool
) -> tuple[Ints, Ints]:
    """The range of the sorted constants that every row matches, from the first to before the last.

    Constants of code c are those from `starts[c]` up to `starts[c + 1]`; a row of code -1 matches none. With `below` it
    matches the constants below its value, otherwise those above; equal ones too if `side` is 1.
    """
    first = np.zeros(len(codes), np.int64)
    last = np.zeros(len(codes), np.int64)
    for row in range(len(codes)):
        code = codes[row]
        if code < 0:
            continue
        start, stop = starts[code], starts[code + 1]
        low, high, value = start, stop, values[row]
        strict = (side == 0) == below
        while low < high:
            middle = (low + high) >> 1
            constant = sorted_constants[middle]
            if constant < value or (constant == value and not strict):
                low = middle + 1
            else:
                high = middle
        first[row], last[row] = (start, low) if below else (low, stop)
    return first, last


@kernel
def ranges_of(codes: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """The range of the constants of every row's code; empty for code -1."""
    first = np.zeros(len(codes), np.int64)
    last = np.zeros(len(codes), np.int64)
    for row in range(len(codes)):
        if codes[row] >= 0:
            first[row], last[row] = starts[codes[row]], starts[codes[row] + 1]
    return first, last


@kernel
def pairs_of(first: Ints, last: Ints, order: Ints) -> tuple[Ints, Ints]:
    """The pairs (row, constant) of the ranges; `order` holds the constants' positions in sorted order."""
    count = 0
    for row in range(len(first)):
        count += last[row] - first[row]
    owners = np.empty(count, np.int64)
    partners = np.empty(count, np.int64)
    at = 0
    for row in range(len(first)):
        for position in range(first[row], last[row]):
            owners[at] = row
            partners[at] = order[position]
            at += 1
    return owners, partners


@kernel
def order_of_doubles(bits: Ints) -> Ints:
    """Integers in the order of the doubles with these bits: 0.0 equals -0.0, and NaN is the largest, as in Spark."""
    result = np.empty(len(bits), np.int64)
    magnitude = np.int64(0x7FFFFFFFFFFFFFFF)
    infinity = np.int64(0x7FF0000000000000)
    for row in range(len(bits)):
        size = bits[row] & magnitude
        if size > infinity:
            result[row] = magnitude
        else:
            result[row] = size if bits[row] >= 0 else -size
    return result


@kernel
def order_of_decimals(words: npt.NDArray[np.uint64]) -> Ints:
    """Decimals as integers of 64 bits; those that do not fit become the least and the greatest integer."""
    result = np.empty(len(words), np.int64)
    least = np.int64(-0x7FFFFFFFFFFFFFFF) - np.int64(1)
    for row in range(len(words)):
        low, high = np.int64(words[row, 0]), np.int64(words[row, 1])
        if high == (low >> 63):
            result[row] = low
        else:
            result[row] = least if high < 0 else np.int64(0x7FFFFFFFFFFFFFFF)
    return result
