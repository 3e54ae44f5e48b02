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


@dataclass(frozen=True)
class Options:
    """`strategy` says how operators learn that rows have expired."""

    strategy: str = "auto"

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise StrategyError(f"there is no strategy {self.strategy!r}; use one of {', '.join(STRATEGIES)}")


DEFAULT = Options()
