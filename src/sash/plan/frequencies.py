"""How the rows of two edges spread over the values of a column that both have: the common values by name, others alike.

Values that are listed as frequent have the share of rows that is known of them; the rest of the rows are spread evenly
over the rest of the values. Where one edge has more values than the other, it has the other's among them (paper 4, 4.2),
and which of them is listed on the one side only says nothing about that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Shares = Mapping[Hashable, float]
"""Frequent values of a column, and the share of the rows that each has."""

NONE: Shares = MappingProxyType({})


@dataclass(frozen=True)
class Distribution:
    """The values of a column: how many there are, and the shares of those that are frequent."""

    count: float
    frequent: Shares = field(default_factory=lambda: NONE)

    @property
    def others(self) -> float:
        """How many values are not listed."""
        return max(0.0, self.count - len(self.frequent))

    @property
    def other(self) -> float:
        """The share of the rows that each value has that is not listed."""
        left = max(0.0, 1 - sum(self.frequent.values()))
        return left / self.others if self.others > 0 else 0.0

    def share(self, value: Hashable) -> float:
        """The share of the rows that have the value."""
        known = self.frequent.get(value)
        if known is not None:
            return known
        return self.other if self.others > 0 else 0.0

    def seen(self, rows: float) -> float:
        """How many values are expected among so many rows."""
        listed = sum(1 - math.exp(-rows * share) for share in self.frequent.values())
        return listed + self.others * (1 - math.exp(-rows * self.other))


@dataclass(frozen=True)
class Alike:
    """So many values of which each has this share of the left rows and that share of the right ones; 0 is not there."""

    values: float
    left: float
    right: float


def compared(left: Distribution, right: Distribution) -> list[Alike]:
    """The values of both sides, in groups that are alike; the shares of each side add up to one.

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
    """Which share of all pairs of rows have the same value.

    >>> chance_of_equality(Distribution(4), Distribution(2))
    0.25
    """
    return sum(group.values * group.left * group.right for group in compared(left, right))


def in_both(left: Distribution, right: Distribution) -> Shares:
    """The frequent values of the pairs of rows that have the same value."""
    chance = chance_of_equality(left, right)
    listed = dict.fromkeys((*left.frequent, *right.frequent))
    if chance <= 0:
        return NONE
    return {value: left.share(value) * right.share(value) / chance for value in listed}


def together(one: Shares, rows: float, other: Shares, others: float) -> Shares:
    """The frequent values of so many rows of the one and so many of the other."""
    total = max(rows + others, 1e-9)
    listed = dict.fromkeys((*one, *other)) if one and other else {}
    return {value: (rows * one.get(value, 0.0) + others * other.get(value, 0.0)) / total for value in listed}
