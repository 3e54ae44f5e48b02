"""KLL sketches in DataSketches' format, which Spark reads, and the functions of them.

A sketch is a list of values with weights that are powers of 2. The sketches that are made here depend on the values alone, not
on their order or on how sketches were merged: the sorted values are cut into blocks of the largest weight and, at the end, one
block per smaller weight that is needed, and the value in the middle of a block stands for it. So a rank is wrong by half of a
block at most, which is less than the bound of KLL's random choices. Up to k values are all kept.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sash.errors import EvaluationError
from sash.operators.scalar.function import Function, by_value
from sash.state.memory import Ints

K = 200
"""Spark's default size of a sketch."""

LEAST_K, MOST_K = 8, 65_535

ITEMS: dict[str, str] = {"bigint": "<i8", "double": "<f8", "float": "<f4"}
"""By Spark's name of a kind of sketch: the format of an item."""

_LEAST_WIDTH = 8
_FAMILY = 15
_EMPTY, _SORTED, _SINGLE = 1, 2, 4
_FULL_HEAD, _SHORT_HEAD = 5, 2
_LEVELS_START = 20
_ROUNDED_BELOW = 1_000_000
"""With so many values at most, DataSketches rounds the place of a rank, so that 0.1 of 10 values is the first."""


class Sketch(NamedTuple):
    """What a sketch says: the different values in order, how often each counts, and the smallest and the largest value, which
    are exact. `k` is None of values of which no sketch was made."""

    k: int | None
    values: npt.NDArray[Any]
    weights: Ints
    extremes: tuple[Any, Any] | None

    @property
    def total(self) -> int:
        return int(self.weights.sum())


def of_values(kind: str, values: Any) -> Sketch:
    """Values that all count once. NaN does not count, and -0.0 is 0.0."""
    found = np.asarray(values, ITEMS[kind])
    if found.dtype.kind == "f":
        found = found[~np.isnan(found)] + found.dtype.type(0)
    found, counts = np.unique(found, return_counts=True)
    return Sketch(None, found, counts.astype(np.int64), (found[0], found[-1]) if len(found) else None)


def merge(parts: Sequence[Sketch]) -> Sketch:
    """The values of all parts, for a sketch of the least size."""
    values, places = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    weights = np.zeros(len(values), np.int64)
    np.add.at(weights, places, np.concatenate([part.weights for part in parts]))
    extremes = [part.extremes for part in parts if part.extremes is not None]
    return Sketch(
        min((part.k for part in parts if part.k is not None), default=None),
        values,
        weights,
        (min(least for least, _ in extremes), max(most for _, most in extremes)) if extremes else None,
    )


def write(kind: str, sketch: Sketch, k: int | None = None) -> bytes:
    """The bytes of a sketch, which has a size of its own or k."""
    size, item, total = k or sketch.k or K, ITEMS[kind], sketch.total
    if sketch.extremes is None:
        return struct.pack("<BBBBHBB", _SHORT_HEAD, 1, _FAMILY, _EMPTY | _SORTED, size, _LEAST_WIDTH, 0)
    if total == 1:
        head = struct.pack("<BBBBHBB", _SHORT_HEAD, 2, _FAMILY, _SINGLE | _SORTED, size, _LEAST_WIDTH, 0)
        return head + sketch.values.astype(item).tobytes()
    top = 0
    while total >> top > size:
        top += 1
    levels = _levels(sketch, top)
    offsets = np.cumsum([_capacity(size, top + 1) - sum(map(len, levels)), *map(len, levels)])[:-1]
    return (
        struct.pack("<BBBBHBB", _FULL_HEAD, 1, _FAMILY, _SORTED, size, _LEAST_WIDTH, 0)
        + struct.pack("<QHBB", total, size, top + 1, 0)
        + offsets.astype("<i4").tobytes()
        + np.array(sketch.extremes, item).tobytes()
        + np.concatenate(levels).astype(item).tobytes()
    )


def _levels(sketch: Sketch, top: int) -> list[npt.NDArray[Any]]:
    """The items of weights 1, 2, 4 ... up to 2 ** top."""
    ends, total = np.cumsum(sketch.weights), sketch.total

    def at(ranks: Ints) -> npt.NDArray[Any]:
        return sketch.values[np.searchsorted(ends, ranks, side="right")]

    blocks = total >> top
    levels = [at((np.arange(blocks) << top) + (1 << top >> 1))]
    start = blocks << top
    for level in reversed(range(top)):
        size = total & (1 << level)
        levels.append(at(np.array([start + (size >> 1)] if size else [], np.int64)))
        start += size
    return levels[::-1]


def _capacity(k: int, levels: int) -> int:
    """The number of items for which a sketch has room; offsets count from its end."""
    return sum(_width(k, levels - 1 - level) for level in range(levels))


def _width(k: int, depth: int) -> int:
    if depth > 30:
        half = depth // 2
        return max(_LEAST_WIDTH, _shrunk(_shrunk(k, half), depth - half))
    return max(_LEAST_WIDTH, _shrunk(k, depth))


def _shrunk(k: int, depth: int) -> int:
    """K * (2/3) ** depth, rounded."""
    return ((2 * k << depth) // int(3**depth) + 1) >> 1


def read(kind: str, sketch: bytes, function: str) -> Sketch:
    """What the bytes say; an error if they are none of a sketch of this kind."""
    try:
        return _read(kind, sketch)
    except (struct.error, ValueError, IndexError) as error:
        raise EvaluationError(f"{function} takes a KLL sketch, and these bytes are none: {error}") from None


def _read(kind: str, sketch: bytes) -> Sketch:
    item = ITEMS[kind]
    words, version, family, flags, k, width, _ = struct.unpack_from("<BBBBHBB", sketch)
    if family != _FAMILY or version not in (1, 2) or k < LEAST_K or width != _LEAST_WIDTH:
        raise ValueError("they begin otherwise")
    if flags & _EMPTY:
        return of_values(kind, [])._replace(k=k)
    if words == _SHORT_HEAD:
        return of_values(kind, np.frombuffer(sketch, item, 1, 8))._replace(k=k)
    total, _, levels, _ = struct.unpack_from("<QHBB", sketch, 8)
    offsets = np.frombuffer(sketch, "<i4", levels, _LEVELS_START).astype(np.int64)
    counts = np.diff(offsets, append=_capacity(k, levels))
    if (counts < 0).any():
        raise ValueError("the levels are not in order")
    weights = np.repeat(np.int64(1) << np.arange(levels, dtype=np.int64), counts)
    if int(weights.sum()) != total:
        raise ValueError("the weights are not those of the number of values")
    found = np.frombuffer(sketch, item, 2 + len(weights), _LEVELS_START + 4 * levels)
    (least, most), values = found[:2], found[2:]
    return merge([Sketch(k, values, weights, (least, most))])


def count(kind: str, sketch: bytes) -> int:
    """KLL_SKETCH_GET_N."""
    return read(kind, sketch, f"kll_sketch_get_n_{kind}").total


def quantile(kind: str, sketch: bytes, rank: float | list[float | None]) -> Any:
    """KLL_SKETCH_GET_QUANTILE: by rank, or by each of some ranks."""
    known = _not_empty(kind, sketch, "quantile")
    if isinstance(rank, list):
        return [None if one is None else _at_rank(known, one) for one in rank]
    return _at_rank(known, rank)


def _not_empty(kind: str, sketch: bytes, part: str) -> Sketch:
    function = f"kll_sketch_get_{part}_{kind}"
    known = read(kind, sketch, function)
    if known.extremes is None:
        raise EvaluationError(
            f"{function}: the sketch has no values; write IF(kll_sketch_get_n_{kind}(sketch) > 0, ..., NULL) to get NULL instead"
        )
    return known


def _at_rank(sketch: Sketch, rank: float) -> Any:
    """The least value whose rank is not less."""
    if not 0 <= rank <= 1:
        raise EvaluationError(f"the rank of a quantile is from 0 to 1, not {rank}")
    assert sketch.extremes is not None
    if rank in (0.0, 1.0):
        return sketch.extremes[int(rank)].item()
    wanted = rank * sketch.total
    if sketch.total <= _ROUNDED_BELOW:
        wanted = math.floor(wanted * 1e7 + 0.5) / 1e7
    values, ranks = _ranked(sketch)
    return values[min(int(np.searchsorted(ranks, math.ceil(wanted))), len(values) - 1)].item()


def _ranked(sketch: Sketch) -> tuple[npt.NDArray[Any], Ints]:
    """The values and how many are not greater; the smallest and the largest are among them, and are taken to count once."""
    assert sketch.extremes is not None
    least, most = sketch.extremes
    values, ranks = sketch.values, np.cumsum(sketch.weights)
    if values[0] != least:
        values, ranks = np.concatenate([[least], values]), np.concatenate([[1], ranks])
    if values[-1] != most:
        values, ranks = np.concatenate([values, [most]]), np.concatenate([ranks[:-1], [ranks[-1] - 1, ranks[-1]]])
    return values, ranks


def rank(kind: str, sketch: bytes, value: Any) -> Any:
    """KLL_SKETCH_GET_RANK: of a value, or of each of some values."""
    known = _not_empty(kind, sketch, "rank")
    if isinstance(value, list):
        return [None if one is None else _rank_of(known, one) for one in value]
    return _rank_of(known, value)


def _rank_of(sketch: Sketch, value: float) -> float:
    """The part of the values that are not greater."""
    values, ranks = _ranked(sketch)
    before = int(np.searchsorted(values, values.dtype.type(value), side="right"))
    return float(ranks[before - 1] / sketch.total) if before else 0.0


def _merged(kind: str, *sketches: bytes) -> bytes:
    return write(kind, merge([read(kind, sketch, f"kll_sketch_merge_{kind}") for sketch in sketches]))


FUNCTIONS: dict[str, Function] = {
    **{f"kll_sketch_get_n_{kind}": by_value(partial(count, kind), 1, fails=True) for kind in ITEMS},
    **{f"kll_sketch_get_quantile_{kind}": by_value(partial(quantile, kind), 2, fails=True) for kind in ITEMS},
    **{f"kll_sketch_get_rank_{kind}": by_value(partial(rank, kind), 2, fails=True) for kind in ITEMS},
    **{f"kll_sketch_merge_{kind}": by_value(partial(_merged, kind), 2, fails=True) for kind in ITEMS},
}
