"""SCHEMA_OF_VARIANT_AGG, with the methods of a user's aggregate: the type that holds the values of all variants of a group."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.plan.variants import merged, type_in, written_type

_NOTHING = "VOID"


class VariantSchema:
    """A state is a type, as `type_in` returns it. It cannot take values back: it merges."""

    def init(self) -> Any:
        return _NOTHING

    def add(self, state: Any, values: pa.Array) -> Any:
        for stored in values.drop_null().unique().to_pylist():
            state = merged(state, type_in(stored))
        return state

    def merge(self, earlier: Any, later: Any) -> Any:
        return merged(earlier, later)

    def result(self, state: Any) -> str:
        return written_type(state)
