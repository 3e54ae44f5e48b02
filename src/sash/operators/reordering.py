"""Orders of a multi-way join that follow its streams: what comes is counted, and past a threshold orders change.

There are no intermediate results and every index serves any order, so orders may change between any two batches without
losing or repeating a result. New ones are looked for when a rate, a window's rows or its number of keys has moved by
half since the last look; they are taken if they save a sixth of the work, so that a small gain, or going back and forth
over one, is not worth a change (paper 4, 5.4: fluctuating rates).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from sash.state.memory import Memory
from sash.time import SECOND

Orders = tuple[tuple[int, ...], ...]

MOVED: Final = 1.5
"""How many times as much, or as little, a figure must have become before orders are thought about again."""

WORTH: Final = 1.2
"""How many times as much the old orders must cost before new ones are taken."""

PATIENCE: Final = 4096
"""So many rows at least, and as many as there are in the windows, are counted before figures are believed."""


_SET, _SINCE, _OLD_COST, _COST, _CONSIDERED, _CHANGES, _MOVER, _FACTOR = range(8)


@dataclass(frozen=True)
class Figures:
    """What orders are chosen by: per input rows a second and rows in the window; per attribute the keys of its inputs;
    per comparison the share of pairs that pass it."""

    rates: tuple[float, ...]
    rows: tuple[float, ...]
    keys: tuple[tuple[float | None, ...], ...]
    shares: tuple[float, ...]

    @property
    def windows(self) -> tuple[float, ...]:
        """How many seconds of its stream a window holds."""
        return tuple(rows / rate if rate > 0 else 0.0 for rate, rows in zip(self.rates, self.rows, strict=True))

    @property
    def values(self) -> list[float]:
        """All that is counted, one after the other."""
        keys = [count for counts in self.keys for count in counts if count is not None]
        return [*self.rates, *self.rows, *keys]

    @property
    def subjects(self) -> list[tuple[str, int]]:
        """What each of the values counts, and of which input."""
        inputs = range(len(self.rates))
        keys = [("keys", j) for counts in self.keys for j, count in enumerate(counts) if count is not None]
        return [*(("rows/s", j) for j in inputs), *(("rows", j) for j in inputs), *keys]


@dataclass(frozen=True)
class Choice:
    """Orders, one per origin; what they cost in comparisons per second, and what those before them do; how many
    orders were costed."""

    orders: Orders
    cost: float
    old_cost: float
    considered: int


class Chooser(Protocol):
    """Whoever knows what orders cost, and what the inputs are called."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the inputs are called."""
        ...

    def choose(self, orders: Orders, figures: Figures) -> Choice | None:
        """The best orders that are found for these figures, beside the orders in force; None if these are to stay."""
        ...

    def describe(self, orders: Orders) -> str:
        """The orders, by the inputs' names."""
        ...


class Reordering:
    """The orders in force of one operator, kept in its memory with what has been counted."""

    def __init__(self, memory: Memory, planned: Orders, figures: Figures | None, chooser: Chooser | None) -> None:
        size = len(planned)
        self._chooser = chooser
        self._marks = memory.array("marks", np.float64, _FACTOR + 1)
        self._orders = memory.array("orders", np.int64, size * size)
        self._arrived = memory.array("arrived", np.int64, size + 1)
        self._figures = memory.array("figures", np.float64, 0 if figures is None else len(figures.values))
        self._subjects = [] if figures is None else figures.subjects
        if not self._marks[_SET]:
            self._marks[_SET] = 1
            self._orders[:] = np.array(planned).ravel()
            if figures is not None:
                self._figures[: len(figures.values)] = figures.values

    @property
    def orders(self) -> Orders:
        """The orders in force."""
        size = len(self._arrived) - 1
        return tuple(tuple(row) for row in self._orders[: size * size].reshape(size, size).tolist())

    @property
    def changes(self) -> int:
        """How often they have changed."""
        return int(self._marks[_CHANGES])

    @property
    def reason(self) -> str:
        """Why the orders are those in force."""
        if not self.changes or self._chooser is None:
            return "as planned"
        counted, mine = self._subjects[int(self._marks[_MOVER])]
        return (
            f"since {int(self._marks[_SINCE])} (change {self.changes}): {self._chooser.names[mine]} had "
            f"{self._marks[_FACTOR]:.3g} times its {counted} beside the others, so it makes "
            f"{self._marks[_COST]:,.0f} comparisons/s instead of {self._marks[_OLD_COST]:,.0f}, "
            f"the least of {int(self._marks[_CONSIDERED])} orders"
        )

    @property
    def described(self) -> str:
        """The orders in force, by name where names are known, else by number from 1."""
        if self._chooser is not None:
            return self._chooser.describe(self.orders)
        return "; ".join("(" + ", ".join(str(j + 1) for j in order) + ")" for order in self.orders)

    def count(self, arrived: Sequence[int], live: int, clock: int) -> float | None:
        """Count rows that came up to the clock, now that so many are live; the seconds that have been counted, once
        there are enough rows."""
        if not self._arrived[-1]:
            self._arrived[-1] = clock  # the rows before the first clock came in a time that is not known
            return None
        self._arrived[:-1] += arrived
        span = clock - int(self._arrived[-1])
        return span / SECOND if span > 0 and self._arrived[:-1].sum() >= max(PATIENCE, live) else None

    def rates(self, seconds: float) -> tuple[float, ...]:
        """Rows a second of every input in the time that has been counted."""
        return tuple(float(count) / seconds for count in self._arrived[:-1])

    def adapt(self, figures: Figures, clock: int) -> bool:
        """Look at the orders by new figures, and count anew; whether they change."""
        self._arrived[:-1] = 0
        self._arrived[-1] = clock
        new = np.maximum(figures.values, 1e-9)
        old = np.maximum(self._figures[: len(new)], 1e-9)
        if self._chooser is None or (np.maximum(new / old, old / new) < MOVED).all():
            return False
        self._figures[: len(new)] = new
        choice = self._chooser.choose(self.orders, figures)
        if choice is None or choice.old_cost < WORTH * choice.cost or choice.orders == self.orders:
            return False
        self._marks[_MOVER], self._marks[_FACTOR] = self._mover((new / old).tolist())
        self._orders[: len(self._orders)] = np.array(choice.orders).ravel()
        self._marks[_SINCE], self._marks[_OLD_COST], self._marks[_COST] = clock, choice.old_cost, choice.cost
        self._marks[_CONSIDERED] = choice.considered
        self._marks[_CHANGES] += 1
        return True

    def _mover(self, ratios: Sequence[float]) -> tuple[int, float]:
        """The figure that moved most beside the others of its kind, and by which factor.

        What moves them all alike, as when a plan for the whole stream meets one shard of it, asks for no other order.
        """
        moved: dict[int, float] = {}
        for kind in dict.fromkeys(counted for counted, _ in self._subjects):
            places = [place for place, (counted, _) in enumerate(self._subjects) if counted == kind]
            mean = sum(math.log(ratios[place]) for place in places) / len(places)
            moved |= {place: math.log(ratios[place]) - mean for place in places}
        most = max(moved, key=lambda place: abs(moved[place]))
        return most, math.exp(moved[most])
