"""Counts of operators and of output delays: how they ride in a note, are observed by Spark, and are read again.

A note has one array: ten numbers for every operator of the plan, in the order of its stages; then how long after its
instant a change left the last stage, by the wall clock: a histogram, the sum and the longest; then how often edges have
changed the way in which they pass times on (piggybacking).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sash.physical.nodes import Operation, PhysicalPlan, Stage, walk
from sash.physical.shard import Counts
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints

if TYPE_CHECKING:
    from pyspark.sql import Column

PARTS = (
    "rows_in", "rows_in_negative", "rows_out", "rows_out_negative", "messages", "expired", "probes", "premature",
    "state_rows", "state_bytes",
)  # fmt: skip
_NOW = ("state_rows", "state_bytes")
"""Of these the last is what counts; of the others, all that there were."""

EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""The upper ends of the histogram's buckets, in seconds; one more bucket is for what took longer."""

_EDGES = np.array([round(edge * 1e6) for edge in EDGES], np.int64)
_SAMPLE = 4096
_LONGEST = 24 * 3600 * 1000
"""What took longer counts as this, in milliseconds: such rows came from an archive."""

_LONGEST_DELAY = "delay max"


def operator_names(plan: PhysicalPlan) -> list[str]:
    """The operators of all stages, as stage.place.operator."""
    return [name for stage in plan.stages for name in stage_operators(stage)]


def stage_operators(stage: Stage) -> list[str]:
    """The operators of a stage, in the order in which a shard runs them."""
    operations = [node for node in walk(stage.root) if isinstance(node, Operation)]
    return [f"{stage.index}.{place}.{node.operator}" for place, node in enumerate(operations)]


class Delays:
    """The histogram of one shard and batch."""

    def __init__(self) -> None:
        self.buckets: Ints = np.zeros(len(EDGES) + 1, np.int64)
        self.sum = 0
        self.longest = 0

    def note(self, changes: ChangeBatch) -> None:
        """Count changes that leave now; of many, every so manieth stands for its neighbours."""
        step = 1 + len(changes) // _SAMPLE
        late = time.time_ns() // 1_000 - changes.ts[::step]
        self.buckets += step * np.bincount(np.searchsorted(_EDGES, late, side="left"), minlength=len(EDGES) + 1)
        if len(late):
            millis = np.clip(late // 1000, 0, _LONGEST)
            self.sum += step * int(millis.sum())
            self.longest = max(self.longest, int(millis.max()))

    @property
    def numbers(self) -> list[int]:
        """As they ride in a note: the sum and the longest in milliseconds."""
        return [*self.buckets.tolist(), self.sum, self.longest]


def packed(
    plan: PhysicalPlan,
    stage: Stage,
    counts: Mapping[str, Counts],
    state: Mapping[str, tuple[int, int]],
    late: Delays,
    switches: int,
) -> list[int]:
    """The array of a note: what the operators of one stage did and keep (rows and bytes), its delays, and the switches
    of its edges."""
    mine = {f"{stage.index}.{name}": (seen, *state.get(name, (0, 0))) for name, seen in counts.items()}
    numbers: list[int] = []
    for name in operator_names(plan):
        seen, rows, held = mine.get(name, (Counts(), 0, 0))
        numbers += [seen.taken, seen.taken_negative, seen.given, seen.given_negative]
        numbers += [seen.messages, seen.expired, seen.probes, seen.premature, rows, held]
    return [*numbers, *late.numbers, switches]


def observed(plan: PhysicalPlan) -> list[Column]:
    """The sums over all notes of a batch (of the longest delay, the largest), for Spark to observe."""
    from pyspark.sql import functions as sf

    named = aliases(operator_names(plan))
    return [
        (sf.max if name == _LONGEST_DELAY else sf.sum)(sf.col("counts")[place]).alias(name)
        for place, name in enumerate(named)
    ]


def aliases(names: Sequence[str]) -> list[str]:
    """What each number of the array is called, for listeners of Spark's too: `0.1.Aggregate rows_in`, `delay 0.5`."""
    of_operators = [f"{name} {part}" for name in names for part in PARTS]
    return [
        *of_operators,
        *(f"delay {edge:g}" for edge in EDGES),
        "delay more",
        "delay sum",
        _LONGEST_DELAY,
        "switches",
    ]


@dataclass(frozen=True)
class Reading:
    """What was observed of a batch."""

    operators: dict[str, dict[str, int]]
    delays: tuple[int, ...]
    delay_sum: float
    delay_longest: float
    switches: int

    @property
    def delay_average(self) -> float | None:
        """In seconds; None where nothing left."""
        count = sum(self.delays)
        return round(self.delay_sum / count, 6) if count else None


def read(names: Sequence[str], seen: Any) -> Reading:
    """The counts in what Spark observed, as a row or a mapping."""
    numbers = [int(seen[alias] or 0) for alias in aliases(names)]
    operators = {
        name: dict(zip(PARTS, numbers[place * len(PARTS) : (place + 1) * len(PARTS)], strict=True))
        for place, name in enumerate(names)
    }
    *buckets, total, longest, switches = numbers[len(names) * len(PARTS) :]
    return Reading(operators, tuple(buckets), total / 1000, longest / 1000, switches)


def added(known: Mapping[str, int], seen: Mapping[str, int]) -> dict[str, int]:
    """The numbers of an operator since the start, with those of another batch."""
    return {part: seen[part] if part in _NOW else known[part] + seen[part] for part in PARTS}


def counts_of(seen: Mapping[str, int]) -> Counts:
    """The counts of an operator, by their parts."""
    return Counts(
        taken=seen["rows_in"],
        taken_negative=seen["rows_in_negative"],
        given=seen["rows_out"],
        given_negative=seen["rows_out_negative"],
        messages=seen["messages"],
        expired=seen["expired"],
        probes=seen["probes"],
        premature=seen["premature"],
    )


def percentile(delays: Sequence[int], share: float) -> float | None:
    """The delay in seconds that this share of changes did not exceed, by bucket; None if there is none, or over an hour.

    >>> percentile([0, 10] + [0] * 14, 0.5)
    0.01
    """
    total = sum(delays)
    if not total:
        return None
    place = int(np.searchsorted(np.cumsum(delays), share * total, side="left"))
    return EDGES[place] if place < len(EDGES) else None
