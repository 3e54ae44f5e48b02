"""Calls of window functions (OVER): the function, its order and its frame, over the columns of an input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sash.plan.expressions import ORDERED, AggregateCall, Column

if TYPE_CHECKING:
    from sash.plan.nodes import SortKey

BoundKind = Literal["unbounded", "row", "peer", "value"]


@dataclass(frozen=True)
class Bound:
    """One end of a frame.

    `unbounded` is the end of the partition; `row` the row `offset` rows after the current one (ROWS); `peer` the first or
    last row that is equal to the current one in the order (RANGE); `value` the first or last row whose value in the order
    is within `column`, a column of the current row (RANGE with an offset).
    """

    kind: BoundKind
    offset: int = 0
    column: int | None = None


@dataclass(frozen=True)
class Frame:
    """The rows from `start` to `end`, both included."""

    start: Bound
    end: Bound

    @property
    def is_whole(self) -> bool:
        """Whether the frame is the whole partition."""
        return self.start.kind == self.end.kind == "unbounded"


WHOLE = Frame(Bound("unbounded"), Bound("unbounded"))
RUNNING = Frame(Bound("unbounded"), Bound("peer"))
RUNNING_ROWS = Frame(Bound("unbounded"), Bound("row"))

RANKING = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"})
"""Functions of a row's position in the order alone."""

_PEERS_ALIKE = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})


@dataclass(frozen=True)
class WindowCall:
    """One window function: ranking, lag, lead, first_value, last_value, nth_value, or an aggregate over a frame.

    `parameter` is NTILE's number of buckets, the distance of LAG and LEAD, or the n of NTH_VALUE. The second argument of
    LAG and LEAD is the value where there is no such row. An aggregate's arguments are those of `aggregate`. `present` is the
    column of which only rows with a value count, because of IGNORE NULLS or FILTER.
    """

    function: str
    arguments: tuple[Column, ...]
    dtype: pa.DataType
    order: tuple[SortKey, ...]
    frame: Frame
    parameter: int = 0
    present: Column | None = None
    aggregate: AggregateCall | None = None

    @property
    def depends_on_ties(self) -> bool:
        """Whether the order of rows that are equal in the order matters."""
        if self.function in _PEERS_ALIKE:
            return False
        if self.aggregate is None:
            return True
        return "row" in (self.frame.start.kind, self.frame.end.kind) or self.aggregate.function in ORDERED

    @property
    def columns(self) -> frozenset[int]:
        """The input columns that the call reads."""
        bounds = (self.frame.start.column, self.frame.end.column)
        arguments = self.arguments if self.aggregate is None else self.aggregate.arguments
        arguments += () if self.present is None else (self.present,)
        return frozenset(
            (
                *(column.index for column in arguments),
                *(key.column for key in self.order),
                *(column for column in bounds if column is not None),
            )
        )

    def moved(self, at: dict[int, int]) -> WindowCall:
        """The call over columns at other positions."""

        def bound(one: Bound) -> Bound:
            return one if one.column is None else replace(one, column=at[one.column])

        def columns(some: tuple[Column, ...]) -> tuple[Column, ...]:
            return tuple(replace(column, index=at[column.index]) for column in some)

        aggregate = self.aggregate
        return replace(
            self,
            arguments=columns(self.arguments),
            order=tuple(replace(key, column=at[key.column]) for key in self.order),
            present=None if self.present is None else replace(self.present, index=at[self.present.index]),
            frame=Frame(bound(self.frame.start), bound(self.frame.end)),
            aggregate=None if aggregate is None else replace(aggregate, arguments=columns(aggregate.arguments)),
        )
