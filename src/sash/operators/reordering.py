"""Adaptive orders of a multi-way join: rows are counted, and the orders change if that saves enough work.

There are no intermediate results and every index serves any order, so orders may change between any two batches without
losing or repeating a result. New orders are searched for when a rate, the rows of a window or its number of keys has
changed by half since the last search. They are taken if they save a sixth of the work, so that small gains and
fluctuations cause no change (paper 4, 5.4: fluctuating rates).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from sash.state.memory import Array, Memory
from sash.time import SECOND

Orders = tuple[tuple[int, ...], ...]

MOVED: Final = 1.5
"""New orders are searched for once a statistic has grown or shrunk by this factor."""

WORTH: Final = 1.2
"""New orders are taken if the old ones cost at least this many times as much."""

PATIENCE: Final = 4096
"""Statistics are used after at least this many rows, and at least as many as are in the windows."""


_SET, _SINCE, _OLD_COST, _COST, _CONSIDERED, _CHANGES, _MOVER, _FACTOR = range(8)


@dataclass(frozen=True)
class JoinStatistics:
    """The statistics that determine orders: rows per second and rows in the window of each input, the number of keys of
    each attribute by input, and the share of pairs that pass each comparison."""

    rates: tuple[float, ...]
    rows: tuple[float, ...]
    keys: tuple[tuple[float | None, ...], ...]
    shares: tuple[float, ...]

    @property
    def windows(self) -> tuple[float, ...]:
        """The length of each window in seconds."""
        return tuple(rows / rate if rate > 0 else 0.0 for rate, rows in zip(self.rates, self.rows, strict=True))

    @property
    def values(self) -> list[float]:
        """All counted statistics as one list."""
        keys = [count for counts in self.keys for count in counts if count is not None]
        return [*self.rates, *self.rows, *keys]

    @property
    def subjects(self) -> list[tuple[str, int]]:
        """The unit and the input of each of `values`."""
        inputs = range(len(self.rates))
        keys = [("keys", j) for counts in self.keys for j, count in enumerate(counts) if count is not None]
        return [*(("rows/s", j) for j in inputs), *(("rows", j) for j in inputs), *keys]


@dataclass(frozen=True)
class Choice:
    """Orders, one per origin, their cost and the cost of the old orders in comparisons per second, and the number of
    orders that were costed."""

    orders: Orders
    cost: float
    old_cost: float
    considered: int


class OrderChooser(Protocol):
    """The planner's interface for adaptive orders: it knows the costs of orders and the names of inputs."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        ...

    def choose(self, orders: Orders, figures: JoinStatistics) -> Choice | None:
        """The best orders found for these statistics, compared with the current ones; None to keep these."""
        ...

    def describe(self, orders: Orders) -> str:
        """The orders as text, with the names of the inputs."""
        ...


class Reordering:
    """The current orders of one operator, kept in its memory with the counted rows."""

    def __init__(
        self, memory: Memory, planned: Orders, figures: JoinStatistics | None, chooser: OrderChooser | None
    ) -> None:
        size = len(planned)
        self._chooser = chooser
        self._marks = memory.array("marks", np.float64, _FACTOR + 1)
        self._orders = memory.array("orders", np.int64, size * size)
        self._arrived = memory.array("arrived", np.int64, size + 1)
        self._figures = memory.array("figures", np.float64, 0 if figures is None else len(figures.values))
        self._arrays: dict[str, Array] = {
            "marks": self._marks, "orders": self._orders, "arrived": self._arrived, "figures": self._figures
        }  # fmt: skip
        self._subjects = [] if figures is None else figures.subjects
        if not self._marks[_SET]:
            self._marks[_SET] = 1
            self._orders[:] = np.array(planned).ravel()
            if figures is not None:
                self._figures[: len(figures.values)] = figures.values

    @property
    def orders(self) -> Orders:
        """The current orders."""
        size = len(self._arrived) - 1
        return tuple(tuple(row) for row in self._orders[: size * size].reshape(size, size).tolist())

    @property
    def learnt(self) -> dict[str, list[float]]:
        """The orders, their reason, and the counts so far."""
        return {name: array.tolist() for name, array in self._arrays.items()}

    def recall(self, learnt: Mapping[str, Sequence[float]]) -> None:
        """Take over what `learnt` has returned, if it is of the same join."""
        if all(len(learnt.get(name, ())) == len(array) for name, array in self._arrays.items()):
            for name, array in self._arrays.items():
                array[:] = learnt[name]

    @property
    def changes(self) -> int:
        """How often the orders have changed."""
        return int(self._marks[_CHANGES])

    @property
    def reason(self) -> str:
        """The reason for the current orders."""
        if not self.changes or self._chooser is None:
            return "as planned"
        counted, mine = self._subjects[int(self._marks[_MOVER])]
        return (
            f"since {int(self._marks[_SINCE])} (change {self.changes}): {self._chooser.names[mine]} had "
            f"{self._marks[_FACTOR]:.3g} times its {counted} relative to the others, so it makes "
            f"{self._marks[_COST]:,.0f} comparisons/s instead of {self._marks[_OLD_COST]:,.0f}, "
            f"the least of {int(self._marks[_CONSIDERED])} orders"
        )

    @property
    def described(self) -> str:
        """The current orders as text, with the names of the inputs if they are known, otherwise their numbers from 1."""
        if self._chooser is not None:
            return self._chooser.describe(self.orders)
        return "; ".join("(" + ", ".join(str(j + 1) for j in order) + ")" for order in self.orders)

    def count(self, arrived: Sequence[int], live: int, clock: int) -> float | None:
        """Count rows that arrived up to the clock, with `live` rows in the windows; returns the seconds that were counted
        once there are enough rows."""
        if not self._arrived[-1]:
            self._arrived[-1] = clock  # the time span of the rows before the first clock is unknown
            return None
        self._arrived[:-1] += arrived
        span = clock - int(self._arrived[-1])
        return span / SECOND if span > 0 and self._arrived[:-1].sum() >= max(PATIENCE, live) else None

    def rates(self, seconds: float) -> tuple[float, ...]:
        """Rows per second of every input over the counted time."""
        return tuple(float(count) / seconds for count in self._arrived[:-1])

    def adapt(self, figures: JoinStatistics, clock: int) -> bool:
        """Reconsider the orders with new statistics and restart the counts; returns whether the orders change."""
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
        """The statistic that changed most relative to the others of its kind, and its factor.

        A change common to all, such as between the whole stream of the plan and one shard, does not affect the order.
        """
        moved: dict[int, float] = {}
        for kind in dict.fromkeys(counted for counted, _ in self._subjects):
            positions = [position for position, (counted, _) in enumerate(self._subjects) if counted == kind]
            mean = sum(math.log(ratios[position]) for position in positions) / len(positions)
            moved |= {position: math.log(ratios[position]) - mean for position in positions}
        most = max(moved, key=lambda position: abs(moved[position]))
        return most, math.exp(moved[most])
