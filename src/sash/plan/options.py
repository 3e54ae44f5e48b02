"""What a user may decide about a query beyond its text: how it is executed, never what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from sash.errors import StrategyError

STRATEGIES = (
    "auto",
    "update-pattern-aware",
    "direct",
    "negative-tuple",
    "hybrid",
    "time-message",
    "piggyback",
    "time-probing",
    "input-triggered",
    "clock-triggered",
)

JOINS = (
    "auto", "binary", "naive", "eager-nlj", "lazy-nlj", "general-lazy-nlj", "eager-hash", "lazy-hash", "hybrid"
)  # fmt: skip
_HASHED = ("auto", "eager-hash", "lazy-hash", "hybrid")


@dataclass(frozen=True)
class Options:
    """`strategy` says how operators learn that rows have expired.

    `join` says how inner joins of streams are run: by `auto`, three or more in one operator and two in another, by
    `binary` two at a time, else in one operator of the given form. `tau` is the interval, in microseconds, at whose
    multiples the answer is brought up to date; None is at every instant. `partitions` is the number of partitions of every
    calendar buffer; None leaves it to the planner, which goes by the rows that it expects. `purge` is how often joins that
    may do it lazily take rows that have ended out of their state, in microseconds: None is as the optimizer chooses, 0 is
    at once. `buckets` is how many hash buckets the windows of a multi-way join may have in all, spread over them as pays
    best; None is a list for every key.
    """

    strategy: str = "auto"
    join: str = "auto"
    tau: int | None = None
    partitions: int | None = None
    purge: int | None = None
    buckets: int | None = None

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise StrategyError(f"there is no strategy {self.strategy!r}; use one of {', '.join(STRATEGIES)}")
        if self.join not in JOINS:
            raise StrategyError(f"there is no join {self.join!r}; use one of {', '.join(JOINS)}")
        if self.tau is not None and self.tau < 1:
            raise StrategyError("tau must be longer than nothing: leave it out to have every change at once")
        if self.partitions is not None and self.partitions < 1:
            raise StrategyError(
                f"a calendar has at least one partition, not {self.partitions}: leave it to the planner"
            )
        if self.purge is not None and self.purge < 0:
            raise StrategyError("purge is an interval: it must not be negative, and 0 is at once")
        if self.tau is None and "lazy" in self.join:
            raise StrategyError(f"join {self.join!r} needs the interval of its re-executions: give tau")
        if self.tau is not None and self.join.startswith("eager"):
            raise StrategyError(f"join {self.join!r} gives every change at once: leave out tau, or take a lazy join")
        if self.buckets is not None and self.join not in _HASHED:
            raise StrategyError(f"join {self.join!r} has no hash tables: leave out buckets, or take a hash join")
        if self.buckets is not None and self.buckets < 1:
            raise StrategyError(
                "a join needs at least one bucket per stream: leave out buckets to have a list for each key"
            )


DEFAULT = Options()
