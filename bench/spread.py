"""Repeated measurements: their median and range, and the trends that claims are about.

A claim about a curve is checked at every step of it, and run by run, not on its end points.

>>> spread([3, 1, 2])
{'median': 2, 'least': 1, 'most': 3}
>>> falls([5, 3, 2]), falls([5, 6, 2])
(True, False)
>>> steps_down([[5, 3, 2], [5, 6, 2]])
(3, 4)
>>> shown([1234.5, 0.12345, 20])
'20 [0.123-1,234]'
>>> fewer([[1, 2], [3]], [[2, 2], [4]])
(2, 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

Runs = Sequence[float]
"""A measure of every run, by seed."""


def spread(values: Iterable[float]) -> dict[str, float]:
    """Median, minimum and maximum."""
    found = sorted(values)
    return {"median": median(found), "least": found[0], "most": found[-1]}


def middle(runs: Runs) -> float:
    """The median of the runs."""
    return float(median(runs))


def figure(value: float) -> str:
    """A number with three significant digits, or all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shown(runs: Runs) -> str:
    """The median, and the range in brackets."""
    found = spread(runs)
    return f"{figure(found['median'])} [{figure(found['least'])}-{figure(found['most'])}]"


def falls(curve: Sequence[float]) -> bool:
    """Whether every step of the curve goes down."""
    return all(later < earlier for earlier, later in pairwise(curve))


def rises(curve: Sequence[float]) -> bool:
    """Whether every step of the curve goes up."""
    return all(later > earlier for earlier, later in pairwise(curve))


def steps_down(curves: Iterable[Sequence[float]]) -> tuple[int, int]:
    """How many steps of the curves go down, and how many there are."""
    steps = [later < earlier for curve in curves for earlier, later in pairwise(curve)]
    return sum(steps), len(steps)


def steps_up(curves: Iterable[Sequence[float]]) -> tuple[int, int]:
    """How many steps of the curves go up, and how many there are."""
    steps = [later > earlier for curve in curves for earlier, later in pairwise(curve)]
    return sum(steps), len(steps)


def fewer(ours: Iterable[Runs], others: Iterable[Runs]) -> tuple[int, int]:
    """In how many pairs of runs, of all points, ours is less, and how many pairs there are."""
    pairs = [mine < other for one, two in zip(ours, others, strict=True) for mine, other in zip(one, two, strict=True)]
    return sum(pairs), len(pairs)


def ratios(one: Runs, other: Runs) -> list[float]:
    """One time by the other, run by run."""
    return [mine / theirs for mine, theirs in zip(one, other, strict=True)]


def by_run(points: Sequence[Runs]) -> list[tuple[float, ...]]:
    """The curve of every run: the points of a series, each with its runs, the other way round."""
    return list(zip(*points, strict=True))


def of(counts: tuple[int, int]) -> str:
    """A count of all, in words."""
    return f"{counts[0]} of {counts[1]}"
