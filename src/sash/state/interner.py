"""The interner: maps 128-bit keys to small dense codes, which are reused after keys are removed."""

from __future__ import annotations

import numpy as np

from sash.state.hashing import Hashes, mix
from sash.state.jit import AHEAD, inlined, kernel, prefetch, uncounted
from sash.state.memory import Arrays, Ints, Memory
from sash.state.slots import Slots, next_slot

_TABLE = 1024


class Interner:
    """An open-addressing table from keys to codes; operators keep their state in arrays indexed by code."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._slots = Slots(memory)
        self._keys = Arrays(memory, {"key.low": np.uint64, "key.high": np.uint64})
        self._table = memory.array("table", np.int64, _TABLE)
        self._size = memory.array("table.size", np.int64, 1)
        if self._size[0] == 0:
            self._size[0] = _TABLE

    @property
    def live(self) -> int:
        """The number of keys."""
        return self._slots.live

    @property
    def capacity(self) -> int:
        """Every code is below this; arrays indexed by code must have this size."""
        return self._slots.high

    def intern(self, low: Hashes, high: Hashes) -> tuple[Ints, Ints]:
        """The code of every key, and the positions of the rows with a new key."""
        rows = len(low)
        codes = np.empty(rows, np.int64)
        fresh = np.empty(rows, np.int64)
        done = found = 0
        while done < rows:
            self._make_room(min(rows - done, max(self.live, _TABLE)))
            size = int(self._size[0])
            room = min(rows - done, size // 2 - self.live)
            self._keys.reserve(self._slots.high + room)
            done, found = _intern(
                low, high, self._table, size, self._keys["key.low"], self._keys["key.high"],
                self._slots.marks, self._slots.stack, found + room, codes, fresh, done, found,
            )  # fmt: skip
        return codes, fresh[:found]

    def find(self, low: Hashes, high: Hashes) -> Ints:
        """The code of every key; -1 for unknown keys."""
        return _find(low, high, self._table, int(self._size[0]), self._keys["key.low"], self._keys["key.high"])

    def forget(self, codes: Ints) -> None:
        """Remove the keys of these codes (each once)."""
        _forget(codes, self._table, int(self._size[0]), self._keys["key.low"], self._keys["key.high"])
        self._slots.give(codes)

    def _make_room(self, more: int) -> None:
        size = int(self._size[0])
        if 2 * (self.live + more) <= size:
            return
        live = self._table[:size][self._table[:size] > 0] - 1
        while 2 * (self.live + more) > size:
            size *= 2
        self._table = self._memory.grow("table", np.int64, size)
        self._table[:] = 0
        self._size[0] = size
        _rebuild(live, self._table, size, self._keys["key.low"], self._keys["key.high"])


@kernel
def _position(low: np.uint64, high: np.uint64, size: int) -> np.int64:
    return np.int64(mix(low ^ (high * np.uint64(0xFF51AFD7ED558CCD))) & np.uint64(size - 1))


@inlined
def _look_ahead(row: int, low: Hashes, high: Hashes, table: Ints, size: int, key_low: Hashes, key_high: Hashes) -> None:
    """Prefetch the data of later rows: first the position in the table, then the key at that position."""
    if row + 2 * AHEAD < len(low):
        prefetch(table, _position(low[row + 2 * AHEAD], high[row + 2 * AHEAD], size))
    if row + AHEAD < len(low):
        code = table[_position(low[row + AHEAD], high[row + AHEAD], size)] - 1
        if code >= 0:
            prefetch(key_low, code)
            prefetch(key_high, code)


@uncounted
def _intern(
    low: Hashes, high: Hashes, table: Ints, size: int, key_low: Hashes, key_high: Hashes,
    marks: Ints, stack: Ints, most: int, codes: Ints, fresh: Ints, first: int, found: int,
) -> tuple[int, int]:  # fmt: skip
    """Intern from row `first` on, until there are `most` new keys: (the row reached, the new keys found)."""
    for row in range(first, len(low)):
        _look_ahead(row, low, high, table, size, key_low, key_high)
        position = _position(low[row], high[row], size)
        while True:
            code = table[position] - 1
            if code < 0:
                if found == most:
                    return row, found
                code = next_slot(marks, stack)
                table[position] = code + 1
                key_low[code] = low[row]
                key_high[code] = high[row]
                fresh[found] = row
                found += 1
                break
            if key_low[code] == low[row] and key_high[code] == high[row]:
                break
            position = (position + 1) & (size - 1)
        codes[row] = code
    return len(low), found


@kernel
def _find(low: Hashes, high: Hashes, table: Ints, size: int, key_low: Hashes, key_high: Hashes) -> Ints:
    codes = np.empty(len(low), np.int64)
    for row in range(len(low)):
        _look_ahead(row, low, high, table, size, key_low, key_high)
        position = _position(low[row], high[row], size)
        while True:
            code = table[position] - 1
            if code < 0 or (key_low[code] == low[row] and key_high[code] == high[row]):
                break
            position = (position + 1) & (size - 1)
        codes[row] = code
    return codes


@uncounted
def _forget(codes: Ints, table: Ints, size: int, key_low: Hashes, key_high: Hashes) -> None:
    for index in range(len(codes)):
        if index + 2 * AHEAD < len(codes):
            prefetch(key_low, codes[index + 2 * AHEAD])
            prefetch(key_high, codes[index + 2 * AHEAD])
        if index + AHEAD < len(codes):
            later = codes[index + AHEAD]
            prefetch(table, _position(key_low[later], key_high[later], size))
        code = codes[index]
        position = _position(key_low[code], key_high[code], size)
        while table[position] != code + 1:
            position = (position + 1) & (size - 1)
        # Deletion by backward shift: an entry further along the run moves here if its hash allows it.
        hole = position
        while True:
            position = (position + 1) & (size - 1)
            other = table[position] - 1
            if other < 0:
                break
            home = _position(key_low[other], key_high[other], size)
            if ((position - home) & (size - 1)) >= ((position - hole) & (size - 1)):
                table[hole] = other + 1
                hole = position
        table[hole] = 0


@uncounted
def _rebuild(live: Ints, table: Ints, size: int, key_low: Hashes, key_high: Hashes) -> None:
    for code in live:
        position = _position(key_low[code], key_high[code], size)
        while table[position] != 0:
            position = (position + 1) & (size - 1)
        table[position] = code + 1
