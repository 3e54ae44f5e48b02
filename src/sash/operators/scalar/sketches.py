"""HyperLogLog and theta sketches in DataSketches' formats, which Spark reads, and the functions of them.

The bytes of a sketch depend on the set of its values alone, not on their order or on how sketches were merged: of HLL, coupons
are sorted, and the estimator that depends on the order (HIP) is left out; of theta, the k smallest hashes are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import datasketches as ds

from sash.errors import EvaluationError
from sash.operators.scalar.function import Function, by_value

LG_K = 12
"""Spark's default size of a sketch, as a logarithm."""

_LIST, _SET = 0, 1
_OUT_OF_ORDER = 0x10


def hll_of(lg_k: int, values: Iterable[int | str]) -> bytes:
    """The sketch of values."""
    sketch = ds.hll_sketch(lg_k, ds.HLL_8)
    for value in values:
        sketch.update(value)
    return _canonical_hll(sketch)


def merge_hll(lg_k: int, sketches: Iterable[bytes]) -> bytes:
    """The sketch of the values of all sketches."""
    union = ds.hll_union(lg_k)
    for sketch in sketches:
        union.update(read_hll(sketch))
    return _canonical_hll(union.get_result(ds.HLL_8))


def _canonical_hll(sketch: Any) -> bytes:
    packed = bytearray(sketch.serialize_compact())
    mode = packed[7] & 3
    if mode in (_LIST, _SET):
        start = 8 if mode == _LIST else 12
        packed[start:] = b"".join(sorted(packed[at : at + 4] for at in range(start, len(packed), 4)))
    else:
        packed[5] |= _OUT_OF_ORDER
        packed[8:16] = bytes(8)
    return bytes(packed)


def read_hll(sketch: bytes, function: str = "hll_union") -> Any:
    """The sketch for DataSketches; an error if the bytes are none."""
    return _read(ds.hll_sketch.deserialize, sketch, function, "HLL")


def read_theta(sketch: bytes, function: str = "theta_union") -> Any:
    """The sketch for DataSketches; an error if the bytes are none."""
    return _read(ds.compact_theta_sketch.deserialize, sketch, function, "theta")


def _read(parse: Callable[[bytes], Any], sketch: bytes, function: str, kind: str) -> Any:
    try:
        return parse(sketch)
    except (ValueError, RuntimeError, IndexError) as error:
        raise EvaluationError(f"{function} takes a {kind} sketch, and these bytes are none: {error}") from None


def check_lg_k(one: int, other: int, allowed: bool, function: str) -> None:
    """Raise an error if sketches of different sizes are merged without leave."""
    if one != other and not allowed:
        raise EvaluationError(
            f"{function}: sketches have different sizes, lgConfigK {one} and {other}: pass TRUE as the last argument"
        )


def theta_of(lg_k: int, values: Iterable[float | str]) -> bytes:
    """The sketch of values."""
    sketch = ds.update_theta_sketch(lg_k)
    for value in values:
        sketch.update(value)
    sketch.trim()
    return bytes(sketch.compact().serialize())


def merge_theta(lg_k: int, sketches: Iterable[bytes]) -> bytes:
    """The sketch of the values of all sketches."""
    union = ds.theta_union(lg_k)
    for sketch in sketches:
        union.update(read_theta(sketch))
    return bytes(union.get_result().serialize())


def intersect_theta(sketches: Iterable[bytes]) -> bytes:
    """The sketch of the values that are in every sketch."""
    intersection = ds.theta_intersection()
    for sketch in sketches:
        intersection.update(read_theta(sketch, "theta_intersection"))
    return bytes(intersection.get_result().serialize())


def _hll_estimate(sketch: bytes) -> int:
    return _rounded(read_hll(sketch, "hll_sketch_estimate").get_estimate())


def _theta_estimate(sketch: bytes) -> int:
    return _rounded(read_theta(sketch, "theta_sketch_estimate").get_estimate())


def _rounded(estimate: float) -> int:
    return int(estimate + 0.5)


def _hll_union(one: bytes, other: bytes, allowed: bool = False) -> bytes:
    sizes = [read_hll(sketch).lg_config_k for sketch in (one, other)]
    check_lg_k(sizes[0], sizes[1], allowed, "hll_union")
    return merge_hll(min(sizes), (one, other))


def _theta_union(one: bytes, other: bytes, lg_k: int = LG_K) -> bytes:
    return merge_theta(lg_k, (one, other))


def _theta_difference(one: bytes, other: bytes) -> bytes:
    read = partial(read_theta, function="theta_difference")
    return bytes(ds.theta_a_not_b().compute(read(one), read(other)).serialize())


def _theta_intersection(one: bytes, other: bytes) -> bytes:
    return intersect_theta((one, other))


FUNCTIONS: dict[str, Function] = {
    "hll_sketch_estimate": by_value(_hll_estimate, 1, fails=True),
    "hll_union": by_value(_hll_union, 2, 3, fails=True),
    "theta_sketch_estimate": by_value(_theta_estimate, 1, fails=True),
    "theta_union": by_value(_theta_union, 2, 3, fails=True),
    "theta_difference": by_value(_theta_difference, 2, fails=True),
    "theta_intersection": by_value(_theta_intersection, 2, fails=True),
}
