"""What is known of a stream or relation beyond its columns, declared by a user or observed in a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sash.errors import StatisticsError
from sash.plan.frequencies import NONE, Shares
from sash.time import SECOND

FREQUENT = 100
"""How many of a column's values are counted one by one, at most."""


@dataclass(frozen=True)
class Statistics:
    """Rows per second that arrive (of a relation: that are updated), rows of a relation, how many different values
    columns have, and the share of rows that their frequent values have, by lower-case name. What is None or missing is
    unknown."""

    rate: float | None = None
    rows: float | None = None
    distinct: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    frequent: Mapping[str, Shares] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("rows", self.rows)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise StatisticsError(f"{name} must be a number of at least 0, not {value!r}")
        for column, count in self.distinct.items():
            if not (math.isfinite(count) and count >= 1):
                raise StatisticsError(f"column {column} must have at least 1 distinct value, not {count!r}")
        for column, shares in self.frequent.items():
            if any(not 0 <= share <= 1 for share in shares.values()) or sum(shares.values()) > 1 + 1e-6:
                raise StatisticsError(f"the frequent values of column {column} must have shares of the rows, 1 in all")

    def of_column(self, name: str) -> float | None:
        """The number of different values of a column, if it is known."""
        return self.distinct.get(name.lower())

    def shares(self, name: str) -> Shares:
        """The frequent values of a column, if they are known."""
        return self.frequent.get(name.lower(), NONE)

    def over(self, known: Statistics) -> Statistics:
        """These, and what else is known."""
        return Statistics(
            known.rate if self.rate is None else self.rate,
            known.rows if self.rows is None else self.rows,
            {**known.distinct, **self.distinct},
            {**known.frequent, **self.frequent},
        )


UNKNOWN = Statistics()


def declared(
    name: str,
    columns: tuple[str, ...],
    *,
    rate: float | None = None,
    rows: float | None = None,
    distinct: Mapping[str, float] | None = None,
    statistics: Statistics = UNKNOWN,
) -> Statistics:
    """Statistics as a user gives them for the stream or relation of that name, over those that were observed of it."""
    counts = {column.lower(): float(count) for column, count in (distinct or {}).items()}
    known = {column.lower() for column in columns}
    for column in (*counts, *statistics.distinct, *statistics.frequent):
        if column not in known:
            raise StatisticsError(f"{name} has no column {column!r} to count; it has {', '.join(columns)}")
    return Statistics(rate, rows, counts).over(statistics)


def observed(
    arrivals: int,
    microseconds: int,
    distinct: Mapping[str, float] | None = None,
    known: Statistics = UNKNOWN,
    frequent: Mapping[str, Mapping[Any, int]] | None = None,
) -> Statistics:
    """Statistics from a run: so many rows arrived in that much time, with so many values of each column, and so many rows
    with each frequent value; what was not counted stays as it was known."""
    if microseconds <= 0:
        raise StatisticsError(f"rates are observed over some time, not over {microseconds} microseconds")
    counts = {column.lower(): float(max(count, 1)) for column, count in (distinct or {}).items()}
    shares = {
        column.lower(): {value: count / max(arrivals, 1) for value, count in commonest(rows).items()}
        for column, rows in (frequent or {}).items()
    }
    return Statistics(arrivals * SECOND / microseconds, None, counts, shares).over(known)


def commonest(counts: Mapping[Any, int]) -> dict[Any, int]:
    """The values with the most rows, and how many these are."""
    return dict(sorted(counts.items(), key=lambda pair: -pair[1])[:FREQUENT])
