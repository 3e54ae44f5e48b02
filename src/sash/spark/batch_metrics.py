"""Batch metrics: what scatter and the shards measured in a batch, as JSON, and the total of a batch.

They travel past the stages to the end of the query, where Spark observes them as one list. A list does not grow with the
number of operators; Spark plans every observed expression anew for each batch and evaluates it for each row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from sash.physical.nodes import PhysicalPlan, Stage
from sash.runtime.counts import Counts
from sash.spark.stream_counts import StreamCounts, add_up
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints
from sash.time import HOUR

METRICS_COLUMN = "notes"
"""The name of the observed list, which listeners of Spark see."""

_WORD = np.dtype(">u4")
_SUMMED = (
    "rows_in", "rows_out", "late", "bad", "ahead", "state_rows", "state_bytes", "rebuilt", "delay_sum", "switches",
)  # fmt: skip
_COUNTED = {
    "rows_in": "taken", "rows_in_negative": "taken_negative", "rows_out": "given", "rows_out_negative": "given_negative",
    "messages": "messages", "time_probes": "time_probes", "switches": "switches", "expired": "expired",
    "rows_examined": "rows_examined", "premature": "premature", "microseconds": "microseconds",
}  # fmt: skip
"""The counts of an operator that add up over batches, with their names in the runtime's `Counts`."""

PARTS = (*_COUNTED, "state_rows", "state_bytes")
"""All counts of an operator; the size of its state is a current value."""

_CHOSEN = {"clock": min, "delay_longest": max}

EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""The upper limits of the histogram's buckets, in seconds; one more bucket counts longer delays."""

_EDGES = np.array([round(edge * 1e6) for edge in EDGES], np.int64)
_SAMPLE = 4096
_ARCHIVED = 24 * HOUR
"""Changes that are older than this are of rows from an archive. They have no delay: nobody waits for them."""


def operator_names(plan: PhysicalPlan) -> list[str]:
    """The operators of all stages, each named stage.position.operator."""
    return [name for stage in plan.stages for name in stage.operator_names]


class DelayHistogram:
    """The output delays of one shard in one batch."""

    def __init__(self) -> None:
        self.buckets: Ints = np.zeros(len(EDGES) + 1, np.int64)
        self.sum = 0
        self.longest = 0

    def record(self, changes: ChangeBatch, now: int) -> None:
        """Count changes that leave at the instant `now`, sampling every n-th of a large batch.

        Changes at time 0, such as the initial total of an empty window, are not caused by a row and have no delay, and
        neither have those of rows from an archive.
        """
        step = 1 + len(changes) // _SAMPLE
        ts = changes.ts[::step]
        late = now - ts[ts > 0]
        late = late[late <= _ARCHIVED]
        self.buckets += step * np.bincount(np.searchsorted(_EDGES, late, side="left"), minlength=len(EDGES) + 1)
        if len(late):
            millis = np.maximum(late // 1000, 0)
            self.sum += step * int(millis.sum())
            self.longest = max(self.longest, int(millis.max()))


def operator_counts(
    stage: Stage, counts: Mapping[str, Counts], rows: Mapping[str, int], held: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """The counts of a shard's operators, with the rows and bytes of their state, by operator name."""
    return {
        f"{stage.index}.{name}": {
            **{part: getattr(seen, attribute) for part, attribute in _COUNTED.items()},
            "state_rows": rows.get(name, 0),
            "state_bytes": held.get(name, 0),
        }
        for name, seen in counts.items()
    }


def current_choices_of(stage: Stage, counts: Mapping[str, Counts]) -> dict[str, dict[str, tuple[str, str]]]:
    """The adaptive choices of a shard's operators and their reasons, by operator and shard."""
    return {
        f"{stage.index}.{name}": {str(shard): what for shard, what in seen.current_choice.items()}
        for name, seen in counts.items()
        if seen.current_choice
    }


def added(known: Mapping[str, int], seen: Mapping[str, int]) -> dict[str, int]:
    """The counts of an operator since the start, with those of another batch added."""
    return {part: known[part] + seen[part] if part in _COUNTED else seen[part] for part in PARTS}


def counts_of(seen: Mapping[str, int], current_choice: Mapping[int, tuple[str, str]] = MappingProxyType({})) -> Counts:
    """Counts by name as the runtime's `Counts`, with the adaptive choice of each shard."""
    counted = {attribute: seen[part] for part, attribute in _COUNTED.items()}
    return Counts(**counted, current_choice=dict(current_choice))


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


@dataclass
class BatchMetrics:
    """The metrics of a batch as far as one task knows them, or their total.

    `clock` is the clock of the output, `operators` has the counts of each operator. `delays` is a histogram of the time
    from a change's instant until it left the last stage, by the wall clock, with sum and maximum in milliseconds. Changes
    that are more than a day old come from an archive, and are not in it.
    `switches` counts how often edges changed the way in which they propagate time (piggybacking), and `current_choice` has the
    adaptive choice in use and its reason, by operator and shard. `streams` has the counts of each stream.

    `stages` has, by number, the seconds that a stage took, the rows and bytes of its state, and its clock. `outputs` has, by
    position in the plan of a job, what an output alone has of `rows_out`, `clock`, `delays`, `delay_sum` and `delay_longest`.
    """

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    bad: int = 0
    ahead: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    rebuilt: int = 0
    clock: int | None = None
    operators: dict[str, dict[str, int]] = field(default_factory=dict)
    delays: list[int] = field(default_factory=list)
    delay_sum: int = 0
    delay_longest: int = 0
    switches: int = 0
    current_choice: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    streams: dict[str, StreamCounts] = field(default_factory=dict)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Non-empty fields as JSON."""
        return json.dumps({name: value for name, value in vars(self).items() if value not in (0, None, [], {})})

    def count_output(self, output: int, rows: int, delays: DelayHistogram) -> None:
        """Count rows of an output, and their delays, in the figures of all outputs and in its own."""
        figures = self.outputs.setdefault(str(output), {})
        buckets = delays.buckets.tolist()
        for known in (vars(self), figures):
            known["rows_out"] = known.get("rows_out", 0) + rows
            known["delays"] = [a + b for a, b in zip(known.get("delays") or [0] * len(buckets), buckets, strict=True)]
            known["delay_sum"] = known.get("delay_sum", 0) + delays.sum
            known["delay_longest"] = max(known.get("delay_longest", 0), delays.longest)

    @property
    def delay_average(self) -> float | None:
        """The average delay in seconds; None if no change had one."""
        count = sum(self.delays)
        return round(self.delay_sum / 1000 / count, 6) if count else None


def to_words(metrics: Sequence[str]) -> Ints:
    """Encode metrics as integers of four bytes each, to be sent in the time column of changes."""
    text = "".join(f"{one}\n" for one in metrics).encode()
    return np.frombuffer(text + b" " * (-len(text) % _WORD.itemsize), _WORD).astype(np.int64)


def from_words(word: str) -> str:
    """Decode the list of metrics in Spark SQL. The words of each task are consecutive and in order."""
    figures = f"transform(collect_list({word}), word -> lpad(hex(word), {2 * _WORD.itemsize}, '0'))"
    lines = f"split(decode(unhex(array_join({figures}, '')), 'UTF-8'), '\\n')"
    return f"filter(transform({lines}, line -> trim(line)), line -> line <> '')"


def total(metrics: Sequence[str], operators: Sequence[str] = ()) -> BatchMetrics:
    """Add up the metrics of a batch. The total has these operators and all that occur in the metrics."""
    return combined([BatchMetrics(**json.loads(one)) for one in metrics], operators)


def combined(parts: Sequence[BatchMetrics], operators: Sequence[str] = ()) -> BatchMetrics:
    """Add up metrics. The total has these operators and all that occur in them."""
    names = dict.fromkeys([*operators, *(name for part in parts for name in part.operators)])
    clocks = [part.clock for part in parts if part.clock is not None]
    delays = np.array([part.delays for part in parts if part.delays], np.int64).reshape(-1, len(EDGES) + 1)
    return BatchMetrics(
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMMED},
        clock=min(clocks, default=None),
        operators={name: {count: _sum(parts, name, count) for count in PARTS} for name in names},
        delays=delays.sum(axis=0).tolist(),
        current_choice=_current_choices(parts),
        delay_longest=max((part.delay_longest for part in parts), default=0),
        streams=add_up(part.streams for part in parts),
        stages=_merged([part.stages for part in parts]),
        outputs=_merged([part.outputs for part in parts]),
    )


def _merged(parts: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The figures of stages or outputs from all tasks: clocks are those of the slowest, delays by the longest."""
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        for name, figures in part.items():
            known = found.setdefault(name, {})
            for figure, value in figures.items():
                if figure not in known:
                    known[figure] = value
                elif figure in _CHOSEN:
                    known[figure] = _CHOSEN[figure](known[figure], value)
                elif isinstance(value, list):
                    known[figure] = [one + other for one, other in zip(known[figure], value, strict=True)]
                else:
                    known[figure] += value
    return found


def _sum(parts: Sequence[BatchMetrics], operator: str, count: str) -> int:
    return sum(part.operators[operator][count] for part in parts if operator in part.operators)


def _current_choices(parts: Sequence[BatchMetrics]) -> dict[str, dict[str, tuple[str, str]]]:
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for part in parts:
        for operator, shards in part.current_choice.items():
            found.setdefault(operator, {}).update(shards)
    return found
