"""Statistics of streams and relations, declared by the user or observed in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.arguments import check_mapping, check_number, shown
from sash.errors import StatisticsError
from sash.plan.frequencies import NONE, Shares
from sash.plan.types import Schema
from sash.time import SECOND

FREQUENT = 100
"""The largest number of frequent values kept per column."""

ENOUGH = 100
"""A rate is that of a peak if it was counted over at least this many rows."""


@dataclass(frozen=True)
class Statistics:
    """Rows per second that arrive (for a relation: that are updated), rows of a relation, and by lower-case column name
    the number of distinct values and the shares of rows of frequent values. None or a missing column means unknown.

    `peak` is the highest rate of a stream whose rate fluctuates."""

    rate: float | None = None
    rows: float | None = None
    distinct: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    frequent: Mapping[str, Shares] = field(default_factory=lambda: MappingProxyType({}))
    peak: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("rows", self.rows), ("peak", self.peak)):
            if value is not None:
                check_number(name, value, error=StatisticsError)
        if self.peak is not None and (self.rate is None or self.peak < self.rate):
            raise StatisticsError("peak is the highest rate: give the average rate, too, which is not above it")
        for column, count in check_mapping("distinct", self.distinct, StatisticsError).items():
            check_number(f"the number of distinct values of column {column}", count, 1, StatisticsError)
        for column, shares in self.frequent.items():
            if any(not 0 <= share <= 1 for share in shares.values()) or sum(shares.values()) > 1 + 1e-6:
                raise StatisticsError(
                    f"the shares of the frequent values of column {column} must be in [0, 1] and sum to at most 1"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        """Plans are sent to workers, and views of mappings cannot be pickled."""
        frequent = {column: dict(shares) for column, shares in self.frequent.items()}
        return Statistics, (self.rate, self.rows, dict(self.distinct), frequent, self.peak)

    @property
    def burst(self) -> float:
        """The peak rate as a multiple of the average rate; 1 if the rate does not fluctuate, as far as known."""
        return 1.0 if self.peak is None or not self.rate else self.peak / self.rate

    def of_column(self, name: str) -> float | None:
        """The number of distinct values of a column, if it is known."""
        return self.distinct.get(name.lower())

    def shares(self, name: str) -> Shares:
        """The frequent values of a column, if they are known."""
        return self.frequent.get(name.lower(), NONE)

    def over(self, known: Statistics) -> Statistics:
        """These statistics, completed by `known` where they have no value."""
        rate = known.rate if self.rate is None else self.rate
        peak = known.peak if self.peak is None else self.peak
        return Statistics(
            rate,
            known.rows if self.rows is None else self.rows,
            {**known.distinct, **self.distinct},
            {**known.frequent, **self.frequent},
            peak if peak is None or rate is None else max(peak, rate),
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
    peak: float | None = None,
) -> Statistics:
    """The statistics that the user declares for a stream or relation, completed by observed ones."""
    given = check_mapping("distinct", distinct, StatisticsError).items()
    counts = {
        column.lower(): check_number(f"distinct of {column}", count, 1, StatisticsError) for column, count in given
    }
    if not isinstance(statistics, Statistics):
        raise StatisticsError(f"statistics must be those of a running query or a result, not {shown(statistics)}")
    known = {column.lower() for column in columns}
    for column in (*counts, *statistics.distinct, *statistics.frequent):
        if column not in known:
            raise StatisticsError(f"{name} has no column {shown(column)}; its columns are {', '.join(columns)}")
    return Statistics(statistics.rate if rate is None else rate, rows, counts, peak=peak).over(statistics)


def observed(
    arrivals: int,
    microseconds: int,
    distinct: Mapping[str, float] | None = None,
    known: Statistics = UNKNOWN,
    frequent: Mapping[str, Mapping[Any, int]] | None = None,
    peak: float | None = None,
) -> Statistics:
    """Statistics from a run: the number of arrivals and their time span, the distinct values of each column, the row
    counts of frequent values, and the highest rate. `known` fills in what was not counted."""
    if microseconds <= 0:
        raise StatisticsError(f"a rate needs a time span greater than 0, not {microseconds} microseconds")
    counts = {column.lower(): float(max(count, 1)) for column, count in (distinct or {}).items()}
    shares = {
        column.lower(): {value: count / max(arrivals, 1) for value, count in commonest(rows).items()}
        for column, rows in (frequent or {}).items()
    }
    rate = arrivals * SECOND / microseconds
    return Statistics(rate, None, counts, shares, None if peak is None else max(peak, rate)).over(known)


def commonest(counts: Mapping[Any, int]) -> dict[Any, int]:
    """The most frequent values with their row counts."""
    return dict(sorted(counts.items(), key=lambda pair: -pair[1])[:FREQUENT])


def seen(
    schema: Schema, columns: Sequence[pa.Array], microseconds: int, leave: str, known: Statistics = UNKNOWN
) -> Statistics:
    """The statistics of rows that arrived within `microseconds`; `leave` is the time column, which is not counted.

    Columns of lists and maps, whose values cannot be compared, are not counted; NULLs are ignored.
    """
    distinct: dict[str, float] = {}
    frequent: dict[str, dict[object, int]] = {}
    for described, column in zip(schema, columns, strict=True):
        name = described.name
        if name.lower() == leave.lower() or pa.types.is_nested(column.type):
            continue
        counted = pc.value_counts(column.drop_null())
        distinct[name] = len(counted)
        most = counted.take(pc.sort_indices(counted.field(1), sort_keys=[("", "descending")])[:FREQUENT])
        frequent[name] = dict(zip(most.field(0).to_pylist(), most.field(1).to_pylist(), strict=True))
    return observed(len(columns[0]) if columns else 0, max(microseconds, 1), distinct, known, frequent)


def highest_rate(times: np.ndarray[Any, np.dtype[np.int64]], microseconds: int) -> float | None:
    """The highest number of rows per second over a tenth of the time, or a shorter part if there are many rows; None if that
    has too few rows to tell.

    >>> highest_rate(np.repeat([0, 10 * SECOND], [900, 100]), 10 * SECOND)
    900.0
    """
    if microseconds < 10 or not len(times):
        return None
    parts = max(10, min(100, len(times) // ENOUGH))
    most = int(np.bincount((times - times.min()) * parts // microseconds).max())
    return most * parts * SECOND / microseconds if most >= ENOUGH else None
