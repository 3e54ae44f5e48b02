"""Streams that are made of one DataFrame, whose rows Spark reads once for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sash.spark.connect import is_connect

if TYPE_CHECKING:
    from sash.spark.sources.inputs import StreamSource


def shared_sources(streams: Mapping[str, StreamSource]) -> dict[str, str]:
    """The streams whose source is that of an earlier one, by name, and that one. Streams over several sources are left out."""
    found: dict[str, str] = {}
    firsts: list[tuple[str, Any]] = []
    for name, stream in streams.items():
        if is_connect(stream.frame.sparkSession):
            continue
        leaves: Any = stream.frame._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001  (PySpark does not tell)
        if leaves.size() != 1:
            continue
        leaf = leaves.head()
        first = next((other for other, known in firsts if leaf.equals(known)), None)
        if first is None:
            firsts.append((name, leaf))
        else:
            found[name] = first
    return found
