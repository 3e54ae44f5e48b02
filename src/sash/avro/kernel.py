"""The loop that decodes Avro: a program, made from a schema, runs over the bytes of one record after the other.

A record writes one slot to every node of the output, except that a node below an array or a map gets a slot per element. A slot
has two words, `first` and `second`, and whether it is valid. A record that does not fit the program is NULL in all columns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sash.state.jit import kernel
from sash.state.memory import Ints

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

# Instructions are (operation, node, x, y); node -1 skips the value.
# Those that begin with a number, a variable-length integer:
LONG = 0
"""A value of int or long, multiplied by x, or divided by -x; it must fit into y bits."""
LONG_AS_DOUBLE = 1
TEXT = 2
"""String or bytes: the slot has their place and length."""
ENUM = 3
"""One of y symbols, whose places are in `symbols` from x on; the slot has -1 - place, and the length."""
UNION = 4
"""One of y branches, whose addresses are in `targets` from x on."""
LIST = 5
"""Begins an array or map; x is the address behind it."""
DECIMAL = 6
"""A decimal in so many bytes; the slot has its low and its high word."""
# Others:
FIXED_DECIMAL = 7
"""A decimal in x bytes."""
FIXED = 8
"""x bytes."""
FLOAT = 9
DOUBLE = 10
BOOLEAN = 11
NULL = 12
STRUCT = 13
JUMP = 14
NEXT = 15
"""Ends an element of the array or map whose LIST is at x."""
CALL = 16
RETURN = 17
BAD = 18
END = 19

_DEPTH = 256
_FREE_ELEMENTS = 65_536
"""Elements without bytes that a record may have, beside one per byte."""


@kernel
def _number(data: Bytes, at: int, end: int) -> tuple[np.int64, int]:
    """The variable-length integer at a place, and the place behind it; that is -1 if there is none."""
    bits, shift = np.uint64(0), np.uint64(0)
    while at < end and shift < np.uint64(64):
        byte = np.uint64(data[at])
        at += 1
        bits |= (byte & np.uint64(127)) << shift
        shift += np.uint64(7)
        if byte < np.uint64(128):
            return np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1)), at
    return np.int64(0), -1


@kernel
def run(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    code: Ints,
    targets: Ints,
    symbols: Ints,
    nulls: Ints,
    nulls_from: Ints,
    columns: Ints,
    base: Ints,
    cursors: Ints,
    first: Ints,
    second: Ints,
    valid: Bytes,
    write: bool,
) -> int:
    """Decode the records between `starts` and `ends`; returns how many do not fit.

    `nulls` lists for every node the nodes that get a slot if it is NULL, and `columns` the nodes of columns. Without `write`,
    only `cursors`, the numbers of slots, are changed.
    """
    floats = first.view(np.float64)
    word = np.zeros(1, np.uint32)
    single = word.view(np.float32)
    before = np.empty(len(cursors), np.int64)
    stack = np.empty((_DEPTH, 4), np.int64)
    failed = 0
    for row in range(len(starts)):
        at, end = starts[row], ends[row]
        for node in range(len(cursors)):
            before[node] = cursors[node]
        depth, pc, elements = 0, 0, 0
        good = at >= 0
        while good:
            operation, node, x, y = code[pc, 0], code[pc, 1], code[pc, 2], code[pc, 3]
            pc += 1
            number = np.int64(0)
            if operation <= DECIMAL:
                number, at = _number(data, at, end)
                if at < 0:
                    good = False
                    break
            if operation == END:
                good = at == end
                break
            if operation == JUMP:
                pc = x
            elif operation == UNION:
                if number < 0 or number >= y:
                    good = False
                    break
                pc = targets[x + number]
            elif operation == CALL:
                if depth == _DEPTH:
                    good = False
                    break
                stack[depth, 0] = pc
                depth += 1
                pc = x
            elif operation == RETURN:
                depth -= 1
                pc = stack[depth, 0]
            elif operation == BAD:
                good = False
                break
            elif operation == NULL:
                if node >= 0:
                    for index in range(nulls_from[node], nulls_from[node + 1]):
                        other = nulls[index]
                        if write:
                            slot = base[other] + cursors[other]
                            first[slot], second[slot], valid[slot] = 0, 0, 0
                        cursors[other] += 1
            elif operation in (LIST, NEXT):
                if operation == LIST:
                    if depth == _DEPTH:
                        good = False
                        break
                    slot = np.int64(-1)
                    if node >= 0:
                        slot = cursors[node]
                        cursors[node] += 1
                    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = 0, slot, 0, pc
                    depth += 1
                else:
                    stack[depth - 1, 0] -= 1
                    stack[depth - 1, 2] += 1
                    elements += 1
                    if elements > ends[row] - starts[row] + _FREE_ELEMENTS:
                        good = False
                        break
                    if stack[depth - 1, 0] > 0:
                        pc = stack[depth - 1, 3]
                        continue
                    # The next block: its number of elements, as that of the first.
                    number, at = _number(data, at, end)
                    if at < 0:
                        good = False
                        break
                    node, x = code[x, 1], code[x, 2]
                    pc = stack[depth - 1, 3]
                if number < 0:
                    number = -number
                    # The size of the block in bytes follows; elements are read one by one all the same.
                    _, at = _number(data, at, end)
                    if at < 0 or number < 0:
                        good = False
                        break
                stack[depth - 1, 0] = number
                if number == 0:
                    depth -= 1
                    if node >= 0 and write:
                        slot = base[node] + stack[depth, 1]
                        first[slot], second[slot], valid[slot] = stack[depth, 2], 0, 1
                    pc = x
            else:
                low, high = np.int64(0), np.int64(0)
                if operation == LONG:
                    if x > 1:
                        low = number * x
                        good = low // x == number
                    else:
                        low = number // -x if x < 0 else number
                    if y < 64 and (low >> np.int64(y - 1)) != (low >> np.int64(63)):
                        good = False
                    if not good:
                        break
                elif operation in (TEXT, FIXED, DECIMAL, FIXED_DECIMAL):
                    size = number if operation <= DECIMAL else x
                    if size < 0 or size > end - at:
                        good = False
                        break
                    low, high = at, size
                    if operation in (DECIMAL, FIXED_DECIMAL):
                        low, high = np.int64(0), np.int64(0)
                        if size > 0 and data[at] >= 128:
                            low, high = np.int64(-1), np.int64(-1)
                        for index in range(size):
                            if size - index > 16 and data[at + index] != (high & np.int64(255)):
                                good = False
                            high = (high << np.int64(8)) | ((low >> np.int64(56)) & np.int64(255))
                            low = (low << np.int64(8)) | np.int64(data[at + index])
                        if not good:
                            break
                    at += size
                elif operation == ENUM:
                    if number < 0 or number >= y:
                        good = False
                        break
                    low = -1 - symbols[x + number]
                    high = symbols[x + number + 1] - symbols[x + number]
                elif operation == BOOLEAN:
                    if at >= end or data[at] > 1:
                        good = False
                        break
                    low = np.int64(data[at])
                    at += 1
                elif operation in (DOUBLE, FLOAT):
                    size = np.int64(8 if operation == DOUBLE else 4)
                    if end - at < size:
                        good = False
                        break
                    bits = np.uint64(0)
                    for index in range(size):
                        bits |= np.uint64(data[at + index]) << np.uint64(8 * index)
                    at += size
                    low = np.int64(bits)
                    word[0] = np.uint32(bits & np.uint64(0xFFFFFFFF))
                if node >= 0:
                    if write:
                        slot = base[node] + cursors[node]
                        if operation == LONG_AS_DOUBLE:
                            floats[slot] = np.float64(number)
                        elif operation == FLOAT:
                            floats[slot] = np.float64(single[0])
                        else:
                            first[slot] = low
                        second[slot] = high
                        valid[slot] = 1
                    cursors[node] += 1
        if not good:
            failed += 1
            for node in range(len(cursors)):
                cursors[node] = before[node]
            for index in range(len(columns)):
                for position in range(nulls_from[columns[index]], nulls_from[columns[index] + 1]):
                    other = nulls[position]
                    if write:
                        slot = base[other] + cursors[other]
                        first[slot], second[slot], valid[slot] = 0, 0, 0
                    cursors[other] += 1
    return failed


@kernel
def gather(data: Bytes, pool: Bytes, places: Ints, offsets: Ints) -> Bytes:
    """The bytes of texts, one after the other: those at a negative place -1 - p are at p in the pool of symbols."""
    found = np.empty(offsets[-1], np.uint8)
    for row in range(len(places)):
        start, at = offsets[row], places[row]
        for index in range(offsets[row + 1] - start):
            found[start + index] = data[at + index] if at >= 0 else pool[-1 - at + index]
    return found
