"""The events of each touch, for accumulators that process a whole touch at once."""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.touches import Events
from sash.state.jit import kernel
from sash.state.memory import Ints


@kernel
def versions_of_events(events: Events, groups: int) -> Ints:
    """By event: the version that its touch completes."""
    later = np.full(groups, -1, np.int64)
    result = np.empty(len(events.order), np.int64)
    for step in range(len(events.order)):
        event = len(events.order) - 1 - step
        code = events.group[events.order[event]]
        if events.version[event] >= 0:
            later[code] = events.version[event]
        result[event] = later[code]
    return result
