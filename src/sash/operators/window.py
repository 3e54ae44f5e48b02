"""The window: assigns every row of a stream its lifetime.

Meaning: a row that arrives at ts is valid in [ts, ts + length); with SLIDE s, in [ceil(ts/s)*s, ceil((ts+length)/s)*s),
and never if that is empty. A row of an aligned window is valid until the last window ends that it is assigned to. Rows of unbounded windows and of count windows (see count_window.py) do not expire.
"""

from __future__ import annotations

import numpy as np

from sash.plan.nodes import Aligned, Range, Rows, Unbounded, Window
from sash.state.changes import ChangeBatch


def assign(window: Window, batch: ChangeBatch) -> ChangeBatch:
    """The rows with their `ts` and `exp` set by the window (rows that are never valid are dropped)."""
    match window:
        case Unbounded() | Rows():
            return batch
        case Aligned(length):
            start = (batch.ts - window.origin) // window.step * window.step + window.origin
            return ChangeBatch(batch.ts, start + length + int(window.closing), batch.sign, batch.columns)
        case Range(length, None):
            return ChangeBatch(batch.ts, batch.ts + length, batch.sign, batch.columns)
        case Range(length, int(slide)):
            start = -(-batch.ts // slide) * slide
            end = -(-(batch.ts + length) // slide) * slide
            shifted = ChangeBatch(start, end, batch.sign, batch.columns)
            return shifted if (end > start).all() else shifted.take(np.flatnonzero(end > start))
        case _:
            raise AssertionError(f"{window} is not a window")
