"""The distribution of the rows of two edges over the values of a common column: frequent values one by one, others evenly.

Frequent values have their known share of the rows; the remaining rows are distributed evenly over the remaining values.
The edge with more values contains all values of the other (paper 4, 4.2). That a value is frequent on one side only does
not affect whether the other side contains it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Shares = Mapping[Hashable, float]
"""The frequent values of a column with their shares of the rows."""

NONE: Shares = MappingProxyType({})


@dataclass(frozen=True)
class Distribution:
    """The number of values of a column, and the shares of its frequent values."""

    count: float
    frequent: Shares = field(default_factory=lambda: NONE)

    @property
    def others(self) -> float:
        """The number of values that are not frequent."""
        return max(0.0, self.count - len(self.frequent))

    @property
    def other(self) -> float:
        """The share of the rows of each value that is not frequent."""
        left = max(0.0, 1 - sum(self.frequent.values()))
        return left / self.others if self.others > 0 else 0.0

    def share(self, value: Hashable) -> float:
        """The share of the rows with the value."""
        known = self.frequent.get(value)
        if known is not None:
            return known
        return self.other if self.others > 0 else 0.0

    def seen(self, rows: float) -> float:
        """The expected number of different values among `rows` rows."""
        listed = sum(1 - math.exp(-rows * share) for share in self.frequent.values())
        return listed + self.others * (1 - math.exp(-rows * self.other))


@dataclass(frozen=True)
class Alike:
    """A group of values that have the same share of the left rows and the same share of the right rows (0: absent)."""

    values: float
    left: float
    right: float


def compared(left: Distribution, right: Distribution) -> list[Alike]:
    """The values of both sides, grouped by equal shares; the shares of each side sum to one.

    >>> compared(Distribution(50), Distribution(20))
    [Alike(values=20, left=0.02, right=0.05), Alike(values=30, left=0.02, right=0.0)]
    """
    both = [value for value in left.frequent if value in right.frequent]
    groups = [Alike(1, left.frequent[value], right.frequent[value]) for value in both]
    here, there = (side.others + len(side.frequent) - len(both) for side in (left, right))
    rests = [left.others, right.others]
    for number, (one, other, most) in enumerate(((left, right, here), (right, left, there))):
        met = min(1.0, other.others / most) if most > 0 else 0.0
        for value, share in one.frequent.items():
            if value in other.frequent:
                continue
            rests[1 - number] -= met
            pairs = [(met, share, other.other), (1 - met, share, 0.0)]
            groups += [Alike(count, *((a, b) if number == 0 else (b, a))) for count, a, b in pairs if count > 0]
    first, second = (max(0.0, rest) for rest in rests)
    common = min(first, second)
    groups += [Alike(common, left.other, right.other)] if common > 0 else []
    groups += [Alike(first - common, left.other, 0.0)] if first > common else []
    groups += [Alike(second - common, 0.0, right.other)] if second > common else []
    return groups


def chance_of_equality(left: Distribution, right: Distribution) -> float:
    """The share of all pairs of rows that have the same value.

    >>> chance_of_equality(Distribution(4), Distribution(2))
    0.25
    """
    return sum(group.values * group.left * group.right for group in compared(left, right))


def in_both(left: Distribution, right: Distribution) -> Shares:
    """The frequent values among the pairs of rows with equal values."""
    chance = chance_of_equality(left, right)
    listed = dict.fromkeys((*left.frequent, *right.frequent))
    if chance <= 0:
        return NONE
    return {value: left.share(value) * right.share(value) / chance for value in listed}


def together(one: Shares, rows: float, other: Shares, others: float) -> Shares:
    """The frequent values of the union of `rows` rows of the one edge and `others` rows of the other."""
    total = max(rows + others, 1e-9)
    listed = dict.fromkeys((*one, *other)) if one and other else {}
    return {value: (rows * one.get(value, 0.0) + others * other.get(value, 0.0)) / total for value in listed}
