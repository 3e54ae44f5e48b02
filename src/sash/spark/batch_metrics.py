"""Batch metrics: what scatter and the shards measured in a batch, as JSON, and the total of a batch.

They travel past the stages to the end of the query, where Spark observes them as one list. A list does not grow with the
number of operators; Spark plans every observed expression anew for each batch and evaluates it for each row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from sash.spark.counts import EDGES, PARTS
from sash.state.memory import Ints

METRICS_COLUMN = "notes"
"""The name of the observed list, which listeners of Spark see."""

_WORD = np.dtype(">u4")

_SUMMED = (
    "rows_in", "rows_out", "late", "bad", "state_rows", "state_bytes", "rebuilt", "delay_sum", "switches",
)  # fmt: skip


@dataclass
class BatchMetrics:
    """The metrics of a batch as far as one task knows them, or their total.

    `clock` is the clock of the output, `operators` has the counts of each operator. `delays` is a histogram of the time
    from a change's instant until it left the last stage, by the wall clock, with sum and maximum in milliseconds.
    `switches` counts how often edges changed the way in which they propagate time (piggybacking), and `current_choice` has the
    adaptive choice in use and its reason, by operator and shard.
    """

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    bad: int = 0
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

    def to_json(self) -> str:
        """Non-empty fields as JSON."""
        return json.dumps({name: value for name, value in asdict(self).items() if value not in (0, None, [], {})})

    @property
    def delay_average(self) -> float | None:
        """The average delay in seconds; None if there was no output."""
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
    parts = [BatchMetrics(**json.loads(one)) for one in metrics]
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
    )


def _sum(parts: Sequence[BatchMetrics], operator: str, count: str) -> int:
    return sum(part.operators[operator][count] for part in parts if operator in part.operators)


def _current_choices(parts: Sequence[BatchMetrics]) -> dict[str, dict[str, tuple[str, str]]]:
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for part in parts:
        for operator, shards in part.current_choice.items():
            found.setdefault(operator, {}).update(shards)
    return found
