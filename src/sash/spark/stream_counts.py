"""Counts per stream in a batch: its rows, those that were late and by how much, and its watermark.

Scatter counts the rows that a stream brings. Late rows are counted in the first channel that carries the stream, among the
rows that have passed the filters below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from sash.state.memory import Ints
from sash.time import BEGINNING, FOREVER

StreamCounts = dict[str, int]
"""`rows_in`, `arrived` (rows that passed the filters), `late`, `late_by` (microseconds, the longest) and `watermark`."""

_LARGEST = ("late_by", "watermark")


def count_late(ts: Ints, before: int, after: int) -> StreamCounts:
    """The counts of rows with these times that arrive while the stream's clock is `before`, and advances it to `after`."""
    late = ts[ts < before]
    counts = {"arrived": len(ts), "late": len(late), "late_by": int(before - np.min(late)) if len(late) else 0}
    return counts if after in (BEGINNING, FOREVER) else {**counts, "watermark": after}


def add_up(parts: Iterable[Mapping[str, StreamCounts]]) -> dict[str, StreamCounts]:
    """The counts of all tasks, by stream."""
    found: dict[str, StreamCounts] = {}
    for part in parts:
        for stream, counts in part.items():
            known = found.setdefault(stream, {})
            for name, value in counts.items():
                known[name] = max(known.get(name, value), value) if name in _LARGEST else known.get(name, 0) + value
    return found
