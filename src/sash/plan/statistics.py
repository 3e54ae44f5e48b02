"""Statistics of streams and relations, declared by the user or observed in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sash.arguments import check_mapping, check_number, shown
from sash.errors import StatisticsError
from sash.plan.frequencies import NONE, Shares
from sash.plan.types import Schema
from sash.time import SECOND

FREQUENT = 100
"""The largest number of frequent values kept per column."""


@dataclass(frozen=True)
class Statistics:
    """Rows per second that arrive (for a relation: that are updated), rows of a relation, and by lower-case column name
    the number of distinct values and the shares of rows of frequent values. None or a missing column means unknown."""

    rate: float | None = None
    rows: float | None = None
    distinct: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    frequent: Mapping[str, Shares] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for name, value in (("rate", self.rate), ("rows", self.rows)):
            if value is not None:
                check_number(name, value, error=StatisticsError)
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
        return Statistics, (self.rate, self.rows, dict(self.distinct), frequent)

    def of_column(self, name: str) -> float | None:
        """The number of distinct values of a column, if it is known."""
        return self.distinct.get(name.lower())

    def shares(self, name: str) -> Shares:
        """The frequent values of a column, if they are known."""
        return self.frequent.get(name.lower(), NONE)

    def over(self, known: Statistics) -> Statistics:
        """These statistics, completed by `known` where they have no value."""
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
    return Statistics(rate, rows, counts).over(statistics)


def observed(
    arrivals: int,
    microseconds: int,
    distinct: Mapping[str, float] | None = None,
    known: Statistics = UNKNOWN,
    frequent: Mapping[str, Mapping[Any, int]] | None = None,
) -> Statistics:
    """Statistics from a run: the number of arrivals and their time span, the distinct values of each column, and the row
    counts of frequent values. `known` fills in what was not counted."""
    if microseconds <= 0:
        raise StatisticsError(f"a rate needs a time span greater than 0, not {microseconds} microseconds")
    counts = {column.lower(): float(max(count, 1)) for column, count in (distinct or {}).items()}
    shares = {
        column.lower(): {value: count / max(arrivals, 1) for value, count in commonest(rows).items()}
        for column, rows in (frequent or {}).items()
    }
    return Statistics(arrivals * SECOND / microseconds, None, counts, shares).over(known)


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
