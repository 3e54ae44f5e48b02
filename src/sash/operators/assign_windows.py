"""Assignment to windows: a row once per window that its time is in, with the window's start and end as columns.

Meaning: (row, ts, exp, sign) gives (row + (start, end), ts, exp, sign) for every window with start <= time < end. Rows
without a time are in no window. A retraction gives the retractions of what its row gave, so any kind of edge passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sash.operators.base import Edge, Operator
from sash.plan.nodes import TimeWindows
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints, Memory


class AssignWindows(Operator):
    """Stateless; the output edge is of the input's kind."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], time: int, windows: TimeWindows) -> None:
        self._time = time
        self._windows = windows
        self._dtype = inputs[0].dtypes[time]

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        if batch.columns[self._time].null_count:
            batch = batch.take(np.flatnonzero(batch.columns[self._time].is_valid().to_numpy(zero_copy_only=False)))
        times = batch.columns[self._time].view(pa.int64()).to_numpy()
        places, starts, ends = windows_of(self._windows, times)
        added = [pa.array(bounds).view(self._dtype) for bounds in (starts, ends)]
        made = batch.take(places)
        return made.with_columns((*made.columns, *added))


def windows_of(windows: TimeWindows, times: Ints) -> tuple[Ints, Ints, Ints]:
    """The windows of every time, in order of times: the positions of the times, and the windows' starts and ends.

    >>> [part.tolist() for part in windows_of(TimeWindows(10, 5), np.array([12]))]
    [[0, 0], [5, 10], [15, 20]]
    """
    numbers = np.tile(np.arange(windows.most, dtype=np.int64), len(times))
    places = np.repeat(np.arange(len(times), dtype=np.int64), windows.most)
    times = times[places]
    if windows.cumulative:
        starts = (times - windows.origin) // windows.size * windows.size + windows.origin
        ends = starts + (numbers + 1) * windows.step
    else:
        last = (times - windows.origin) // windows.step * windows.step + windows.origin
        starts = last - (windows.most - 1 - numbers) * windows.step
        ends = starts + windows.size
    open_ = ends > times
    return (places, starts, ends) if open_.all() else (places[open_], starts[open_], ends[open_])
