"""Netting: changes of equal rows that cancel out at one instant are removed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.state.changes import ChangeBatch
from sash.state.hashing import Hashes, hash_rows, mix
from sash.state.jit import kernel
from sash.state.memory import Ints
from sash.time import FOREVER


def net(batch: ChangeBatch) -> ChangeBatch:
    """The sorted batch without pairs of `-` and `+` of equal rows, with equal expiration times, at one instant.

    Only rows of instants with both signs are compared; a batch of one sign costs one pass over its signs.
    """
    if len(batch) < 2 or (batch.sign > 0).all() or (batch.sign < 0).all():
        return batch
    mixed = _mixed(batch.ts, batch.sign)
    if not len(mixed):
        return batch
    part = batch.take(mixed)
    dead = _cancel(part.ts, part.sign, *hash_rows(_values(part), len(part), exact=True))
    if not dead.any():
        return batch
    alive = np.ones(len(batch), np.bool_)
    alive[mixed[dead]] = False
    return batch.take(np.flatnonzero(alive))


def net_all(batch: ChangeBatch) -> ChangeBatch:
    """The batch netted as a whole, across its instants: for tables that are updated once per batch, and for logs.

    Rows are equal if their expiration times are equal, too.
    """
    if len(batch) < 2:
        return batch
    order = np.argsort(batch.sign, kind="stable")
    low, high = hash_rows(_values(batch), len(batch), exact=True)
    dead = np.empty(len(batch), np.bool_)
    dead[order] = _cancel(np.zeros(len(batch), np.int64), batch.sign[order], low[order], high[order])
    return batch.take(np.flatnonzero(~dead))


def _values(batch: ChangeBatch) -> tuple[pa.Array, ...]:
    """The columns that equal rows share: with the expiration time, if there is any."""
    return batch.columns if (batch.exp == FOREVER).all() else (*batch.columns, pa.array(batch.exp))


def cancelled(sign: npt.NDArray[np.int8], low: Hashes, high: Hashes) -> npt.NDArray[np.bool_]:
    """Marks the changes that cancel out with one of the other sign, by the hashes of their rows; the `-` rows come first."""
    return _cancel(np.zeros(len(sign), np.int64), sign, low, high)


@kernel
def _mixed(ts: Ints, sign: npt.NDArray[np.int8]) -> Ints:
    """The positions of rows at instants that have both signs."""
    result = np.empty(len(ts), np.int64)
    count = 0
    start = 0
    while start < len(ts):
        stop = start + 1
        while stop < len(ts) and ts[stop] == ts[start]:
            stop += 1
        if sign[start] < 0 and sign[stop - 1] > 0:
            for index in range(start, stop):
                result[count] = index
                count += 1
        start = stop
    return result[:count].copy()


@kernel
def _cancel(ts: Ints, sign: npt.NDArray[np.int8], low: Hashes, high: Hashes) -> npt.NDArray[np.bool_]:
    """Marks the changes that cancel out with one of the other sign at the same instant; the `-` rows come first.

    The `-` rows of an instant wait in a small hash table, equal ones on one stack, for its `+` rows.
    """
    dead = np.zeros(len(ts), np.bool_)
    stacks = np.zeros((2, len(ts)), np.int64)
    table = np.zeros(16, np.int64)
    start = 0
    while start < len(ts):
        middle = start
        while middle < len(ts) and ts[middle] == ts[start] and sign[middle] < 0:
            middle += 1
        stop = middle
        while stop < len(ts) and ts[stop] == ts[start]:
            stop += 1
        if stop > middle > start:
            size = len(table)
            while 2 * (middle - start) > size:
                size *= 2
            if size > len(table):
                table = np.zeros(size, np.int64)
            _cancel_instant(start, middle, stop, low, high, table, stacks[0], stacks[1], dead)
        start = stop
    return dead


@kernel
def _cancel_instant(
    start: int, middle: int, stop: int, low: Hashes, high: Hashes, table: Ints, top: Ints, below: Ints,
    dead: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    for index in range(start, middle):
        position = _position(index, low, high, table)
        if table[position] == 0:
            table[position] = index + 1
        first = table[position] - 1
        below[index] = top[first]
        top[first] = index + 1
    for index in range(middle, stop):
        first = table[_position(index, low, high, table)] - 1
        if first >= 0 and top[first] > 0:
            other = top[first] - 1
            top[first] = below[other]
            dead[other] = True
            dead[index] = True
    if 4 * (middle - start) > len(table):
        table[:] = 0
        return
    # Backwards, so that a row's probe sequence is still complete when it is searched.
    for index in range(middle - 1, start - 1, -1):
        position = _position(index, low, high, table)
        if table[position] == index + 1:
            table[position] = 0


@kernel
def _position(index: int, low: Hashes, high: Hashes, table: Ints) -> np.int64:
    """The position of the row's key in the table, or the free position for it."""
    mask = np.uint64(len(table) - 1)
    position = mix(low[index] ^ (high[index] * np.uint64(0xFF51AFD7ED558CCD))) & mask
    while table[position] != 0:
        other = table[position] - 1
        if low[other] == low[index] and high[other] == high[index]:
            break
        position = (position + np.uint64(1)) & mask
    return np.int64(position)
