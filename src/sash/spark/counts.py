"""Counts of operators and the histogram of output delays, as batch metrics carry them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from sash.physical.nodes import PhysicalPlan, Stage
from sash.runtime.counts import Counts
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints

PARTS = (
    "rows_in", "rows_in_negative", "rows_out", "rows_out_negative", "messages", "expired", "probes", "premature",
    "state_rows", "state_bytes",
)  # fmt: skip
_GAUGES = ("state_rows", "state_bytes")
"""The counts that are a current value; the others add up over batches."""

EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""The upper limits of the histogram's buckets, in seconds; one more bucket counts longer delays."""

_EDGES = np.array([round(edge * 1e6) for edge in EDGES], np.int64)
_SAMPLE = 4096
_LONGEST = 24 * 3600 * 1000
"""Longer delays, of rows that come from an archive, count as this many milliseconds."""


def operator_names(plan: PhysicalPlan) -> list[str]:
    """The operators of all stages, each named stage.position.operator."""
    return [name for stage in plan.stages for name in stage.operator_names]


class DelayHistogram:
    """The output delays of one shard in one batch."""

    def __init__(self) -> None:
        self.buckets: Ints = np.zeros(len(EDGES) + 1, np.int64)
        self.sum = 0
        self.longest = 0

    def record(self, changes: ChangeBatch) -> None:
        """Count changes that leave now, sampling every n-th of a large batch.

        Changes at time 0, such as the initial total of an empty window, are not caused by a row and have no delay.
        """
        step = 1 + len(changes) // _SAMPLE
        ts = changes.ts[::step]
        late = time.time_ns() // 1_000 - ts[ts > 0]
        self.buckets += step * np.bincount(np.searchsorted(_EDGES, late, side="left"), minlength=len(EDGES) + 1)
        if len(late):
            millis = np.clip(late // 1000, 0, _LONGEST)
            self.sum += step * int(millis.sum())
            self.longest = max(self.longest, int(millis.max()))


def operator_counts(
    stage: Stage, counts: Mapping[str, Counts], rows: Mapping[str, int], held: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """The counts of a shard's operators, with the rows and bytes of their state, by operator name."""
    found = {}
    for name, seen in counts.items():
        numbers = [seen.taken, seen.taken_negative, seen.given, seen.given_negative]
        numbers += [seen.messages, seen.expired, seen.probes, seen.premature, rows.get(name, 0), held.get(name, 0)]
        found[f"{stage.index}.{name}"] = dict(zip(PARTS, numbers, strict=True))
    return found


def current_choices_of(stage: Stage, counts: Mapping[str, Counts]) -> dict[str, dict[str, tuple[str, str]]]:
    """The adaptive choices of a shard's operators and their reasons, by operator and shard."""
    return {
        f"{stage.index}.{name}": {str(shard): what for shard, what in seen.current_choice.items()}
        for name, seen in counts.items()
        if seen.current_choice
    }


def added(known: Mapping[str, int], seen: Mapping[str, int]) -> dict[str, int]:
    """The counts of an operator since the start, with those of another batch added."""
    return {part: seen[part] if part in _GAUGES else known[part] + seen[part] for part in PARTS}


def counts_of(seen: Mapping[str, int], current_choice: Mapping[int, tuple[str, str]] = MappingProxyType({})) -> Counts:
    """Counts by name as the runtime's `Counts`, with the adaptive choice of each shard."""
    return Counts(
        taken=seen["rows_in"],
        taken_negative=seen["rows_in_negative"],
        given=seen["rows_out"],
        given_negative=seen["rows_out_negative"],
        messages=seen["messages"],
        expired=seen["expired"],
        probes=seen["probes"],
        premature=seen["premature"],
        current_choice=dict(current_choice),
    )


def percentile(delays: Sequence[int], share: float) -> float | None:
    """The delay in seconds that this share of changes did not exceed, by bucket; None without changes or over an hour.

    >>> percentile([0, 10] + [0] * 14, 0.5)
    0.01
    """
    total = sum(delays)
    if not total:
        return None
    bucket = int(np.searchsorted(np.cumsum(delays), share * total, side="left"))
    return EDGES[bucket] if bucket < len(EDGES) else None
