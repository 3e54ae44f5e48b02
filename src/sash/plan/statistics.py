"""What is known of a stream or relation beyond its columns, declared by a user or observed in a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sash.errors import StatisticsError


@dataclass(frozen=True)
class Statistics:
    """Rows per second that arrive (of a relation: that are updated), rows of a relation, and how many different values
    columns have, by lower-case name. What is None or missing is unknown."""

    rate: float | None = None
    rows: float | None = None
    distinct: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("rows", self.rows)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise StatisticsError(f"{name} must be a number of at least 0, not {value!r}")
        for column, count in self.distinct.items():
            if not (math.isfinite(count) and count >= 1):
                raise StatisticsError(f"column {column} must have at least 1 distinct value, not {count!r}")

    def of_column(self, name: str) -> float | None:
        """The number of different values of a column, if it is known."""
        return self.distinct.get(name.lower())


UNKNOWN = Statistics()


def declared(
    name: str,
    columns: tuple[str, ...],
    *,
    rate: float | None = None,
    rows: float | None = None,
    distinct: Mapping[str, float] | None = None,
) -> Statistics:
    """Statistics as a user gives them for the stream or relation of that name."""
    counts = {column.lower(): float(count) for column, count in (distinct or {}).items()}
    known = {column.lower() for column in columns}
    for column in counts:
        if column not in known:
            raise StatisticsError(f"{name} has no column {column!r} to count; it has {', '.join(columns)}")
    return Statistics(rate, rows, counts)


def observed(
    arrivals: int, microseconds: int, distinct: Mapping[str, int] | None = None, known: Statistics = UNKNOWN
) -> Statistics:
    """Statistics from a run: so many rows arrived in that much time; what was not counted stays as it was known."""
    if microseconds <= 0:
        raise StatisticsError(f"rates are observed over some time, not over {microseconds} microseconds")
    counts = {column.lower(): float(max(count, 1)) for column, count in (distinct or {}).items()}
    return Statistics(arrivals * 1_000_000 / microseconds, known.rows, {**known.distinct, **counts})
