"""Shard labels: keys for which Spark's hash partitioning puts every shard in a partition of its own.

Spark sends a key to partition pmod(hash(key), P). With the keys 0, 1, 2 ... several shards would share a partition while
others stay empty, so the label of shard i is the smallest long that hashes to i.
"""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_SEED = 42


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def _mix(state: int, word: int) -> int:
    word = _rotate((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotate(state ^ word, 13) * 5 + 0xE6546B64) & _MASK


def spark_hash(value: int) -> int:
    """Spark SQL's hash(value) of a BIGINT: Murmur3 over its two halves.

    >>> spark_hash(0)
    -1670924195
    """
    state = _mix(_mix(_SEED, value & _MASK), (value >> 32) & _MASK) ^ 8
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _MASK
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _MASK
    state ^= state >> 16
    return state - 2**32 if state >= 2**31 else state


def shard_labels(shards: int) -> tuple[int, ...]:
    """The label of every shard.

    >>> shard_labels(4)
    (2, 0, 14, 3)
    """
    found: dict[int, int] = {}
    label = 0
    while len(found) < shards:
        found.setdefault(spark_hash(label) % shards, label)
        label += 1
    return tuple(found[shard] for shard in range(shards))
