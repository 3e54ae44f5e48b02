"""Aggregates of sketches, with the methods of a user's aggregate: a sketch merges, and cannot take values back.

A state is the bytes of a sketch, which depend on the set of values alone, so that every way of merging gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from sash.operators.scalar import sketches


class _Merged:
    """A state is None, of no values, or a sketch."""

    def init(self) -> bytes | None:
        return None

    def add(self, state: bytes | None, values: pa.Array) -> bytes | None:
        known = values.unique().drop_null().to_pylist()
        made = self._made(known) if known else None
        return made if state is None else self.merge(state, made)

    def merge(self, earlier: bytes | None, later: bytes | None) -> bytes | None:
        parts = [part for part in (earlier, later) if part is not None]
        return self._joined(parts) if len(parts) > 1 else parts[0] if parts else None

    def result(self, state: bytes | None) -> bytes:
        return self._made([]) if state is None else state

    def _made(self, values: Sequence[Any]) -> bytes:
        """The sketch of values."""
        raise NotImplementedError

    def _joined(self, parts: Iterable[bytes]) -> bytes:
        """The sketch of sketches."""
        raise NotImplementedError


class HllSketch(_Merged):
    """HLL_SKETCH_AGG."""

    def __init__(self, lg_k: int = sketches.LG_K) -> None:
        self._lg_k = lg_k

    def _made(self, values: Sequence[Any]) -> bytes:
        return sketches.hll_of(self._lg_k, values)

    def _joined(self, parts: Iterable[bytes]) -> bytes:
        return sketches.merge_hll(self._lg_k, parts)


class HllUnion(_Merged):
    """HLL_UNION_AGG of sketches, of one size unless different ones are allowed: then the smallest decides."""

    def __init__(self, allowed: bool = False) -> None:
        self._allowed = allowed

    def _made(self, values: Sequence[Any]) -> bytes:
        return self._joined(values)

    def _joined(self, parts: Iterable[bytes]) -> bytes:
        sizes = [sketches.read_hll(part).lg_config_k for part in parts] or [sketches.LG_K]
        sketches.check_lg_k(min(sizes), max(sizes), self._allowed, "hll_union_agg")
        return sketches.merge_hll(min(sizes), parts)


class ThetaSketch(_Merged):
    """THETA_SKETCH_AGG."""

    def __init__(self, lg_k: int = sketches.LG_K) -> None:
        self._lg_k = lg_k

    def _made(self, values: Sequence[Any]) -> bytes:
        return sketches.theta_of(self._lg_k, values)

    def _joined(self, parts: Iterable[bytes]) -> bytes:
        return sketches.merge_theta(self._lg_k, parts)


class ThetaUnion(ThetaSketch):
    """THETA_UNION_AGG of sketches."""

    def _made(self, values: Sequence[Any]) -> bytes:
        return self._joined(values)


class ThetaIntersection(_Merged):
    """THETA_INTERSECTION_AGG of sketches."""

    def _made(self, values: Sequence[Any]) -> bytes:
        return self._joined(values) if values else sketches.theta_of(sketches.LG_K, [])

    def _joined(self, parts: Iterable[bytes]) -> bytes:
        return sketches.intersect_theta(parts)


SKETCHES: dict[str, Callable[..., Any]] = {
    "hll_sketch_agg": HllSketch,
    "hll_union_agg": HllUnion,
    "theta_sketch_agg": ThetaSketch,
    "theta_union_agg": ThetaUnion,
    "theta_intersection_agg": ThetaIntersection,
}
