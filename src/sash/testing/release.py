"""Release times of a replay's changes, from a simulation of the same rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sash.planning import Planned
from sash.runtime.legs import static_tables
from sash.state.changes import ChangeBatch, concat
from sash.state.hashing import hash_rows
from sash.state.memory import Ints
from sash.testing.inputs import MicroBatch, ReplayInput
from sash.testing.simulation import SimulatedInput, Simulation, SimulationResult, SimulationSettings
from sash.time import BEGINNING, FOREVER


def simulate_releases(
    planned: Planned,
    relations: Mapping[str, pa.Table],
    batches: Sequence[MicroBatch],
    inputs: Mapping[str, ReplayInput],
    end: int,
    settings: SimulationSettings,
) -> SimulationResult:
    """Simulate the plan over the rows of the micro-batches, without those that are late."""
    simulated: dict[str, SimulatedInput] = {}
    for name in (*planned.streams, *planned.changing):
        clock, parts = BEGINNING, [ChangeBatch.empty([column.type for column in inputs[name].columns])]
        for micro in batches:
            if name in micro.rows:
                rows = micro.rows[name]
                parts.append(rows.take(np.flatnonzero(rows.ts >= clock)))
                clock = max(clock, micro.clocks[name])
        simulated[name] = SimulatedInput(concat(parts).sorted(), inputs[name].slack)
    tables = static_tables(planned.physical, relations)
    return Simulation(planned.physical, tables, simulated, settings).run(min(end, FOREVER) - 1)


def match_releases(changes: ChangeBatch, simulated: SimulationResult) -> Ints:
    """The simulated release time of each change, matched by time, sign and row.

    Two shards may add and remove an equal row at one instant, which the simulation of one shard nets. The release time of
    such a pair is that of the next release.
    """
    times: dict[tuple[int, int, int, int], deque[int]] = {}
    for key, at in zip(_keys(simulated.changes), simulated.released.tolist(), strict=True):
        times.setdefault(key, deque()).append(at)
    releases = np.append(np.unique(simulated.released), FOREVER)
    following = releases[np.searchsorted(releases, changes.ts)].tolist()
    found = (times.get(key) for key in _keys(changes))
    return np.array(
        [queue.popleft() if queue else other for queue, other in zip(found, following, strict=True)], np.int64
    )


def _keys(changes: ChangeBatch) -> list[tuple[int, int, int, int]]:
    low, high = hash_rows(changes.columns, len(changes), exact=True)
    return list(zip(changes.ts.tolist(), changes.sign.tolist(), low.tolist(), high.tolist(), strict=True))
