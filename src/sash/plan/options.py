"""Options of the public calls, checked when they are made. They decide how a query is executed, never its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sash.arguments import check_count, check_flag, check_text, check_word, shown
from sash.durations import microseconds
from sash.errors import OptionError, StrategyError
from sash.time import MILLISECOND

Strategy = Literal[
    "auto",
    "update-pattern-aware",
    "direct",
    "negative-tuple",
    "hybrid",
    "time-message",
    "piggyback",
    "time-probing",
    "input-triggered",
    "re-evaluation",
]
ReplayStrategy = Literal[Strategy, "clock-triggered"]
JoinForm = Literal[
    "auto", "binary", "naive", "eager-nlj", "lazy-nlj", "general-lazy-nlj", "eager-hash", "lazy-hash", "hybrid"
]
Mode = Literal["changes", "net", "upsert"]
BadRows = Literal["fail", "drop"]
TriggerWord = Literal["available_now", "once"]

ENGINE_STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
STRATEGIES: tuple[ReplayStrategy, ...] = get_args(ReplayStrategy)
JOINS: tuple[JoinForm, ...] = get_args(JoinForm)
MODES: tuple[Mode, ...] = get_args(Mode)
BAD_ROWS: tuple[BadRows, ...] = get_args(BadRows)

PROBING: tuple[Strategy, ...] = ("time-probing", "hybrid")
"""The strategies that have a probing period."""

MOST_SHARDS = 1_024
"""The largest number of shards: each is a task of every batch."""

_HASH_JOINS = ("auto", "eager-hash", "lazy-hash", "hybrid")
_SPARK_TRIGGERS = ("availableNow", "once", "processingTime")


def check_strategy(name: str) -> Strategy:
    """Return the strategy of that name; refuse the one that only `replay` simulates, because its answers may be wrong."""
    if name == "clock-triggered":
        raise StrategyError(
            f"strategy {name!r} may give wrong answers, so it can be used only in sash.testing.replay; use one of "
            f"{', '.join(ENGINE_STRATEGIES)}"
        )
    return check_word("strategy", name, ENGINE_STRATEGIES, StrategyError)


@dataclass(frozen=True)
class Options:
    """Options of a planned query.

    `strategy` is how operators learn that rows have expired. `join` is how inner joins of streams are executed: `auto`
    joins three or more in one operator and two in another, `binary` joins two at a time, and the other words name a form
    of the multi-way join. `tau` is the interval, in microseconds, at whose multiples the answer is updated; None updates
    it at every instant. `partitions` is the number of partitions of every calendar buffer; None lets the planner choose it
    by the number of rows that it expects. `purge` is the interval, in microseconds, at which joins that support lazy
    expiration remove expired rows from their state; None and 0 remove them at once. `buckets` is the total number of hash
    buckets of a multi-way join's windows; None keeps a list for every key. `probe` is the period of time probing, in
    microseconds of event time; None probes once per batch. `patience` is how long, in microseconds, piggybacking lets a time
    wait for a row that carries it; None is a thousandth of the rows' lifetime. Unless `reorder`, the orders of multi-way joins
    do not change at run time.
    """

    strategy: ReplayStrategy = "auto"
    join: JoinForm = "auto"
    tau: int | None = None
    partitions: int | None = None
    purge: int | None = None
    buckets: int | None = None
    probe: int | None = None
    patience: int | None = None
    reorder: bool = True

    def __post_init__(self) -> None:
        check_word("strategy", self.strategy, STRATEGIES, StrategyError)
        check_word("join", self.join, JOINS, StrategyError)
        check_flag("reorder", self.reorder)
        if self.tau is not None and self.tau < 1:
            raise StrategyError("tau must be greater than 0: leave it out to update the answer at every instant")
        if self.partitions is not None:
            check_count("partitions", self.partitions, error=StrategyError)
        if self.purge is not None and self.purge < 0:
            raise StrategyError("purge is an interval and must not be negative; 0 removes expired rows at once")
        if self.tau is None and "lazy" in self.join:
            raise StrategyError(f"join {self.join!r} needs the interval of its re-executions: give tau")
        if self.tau is not None and self.join.startswith("eager"):
            raise StrategyError(
                f"join {self.join!r} updates the answer at every instant: leave out tau, or use a lazy join"
            )
        if self.strategy == "re-evaluation" and "lazy" in self.join:
            raise StrategyError(
                f"strategy 're-evaluation' computes joins anew at every instant, and join {self.join!r} only at multiples of "
                "tau: leave out join, or use another strategy"
            )
        if self.buckets is not None and self.join not in _HASH_JOINS:
            raise StrategyError(f"join {self.join!r} has no hash tables: leave out buckets, or use a hash join")
        if self.buckets is not None:
            check_count("buckets", self.buckets, error=StrategyError)
        if self.probe is not None and self.probe < 1:
            raise StrategyError("probe must be greater than 0: leave it out to probe once per batch")
        if self.probe is not None and self.strategy not in PROBING:
            raise StrategyError(
                f"strategy {self.strategy!r} does not probe: leave out probe, or use time-probing or hybrid"
            )
        if self.patience is not None and self.patience < 0:
            raise StrategyError("patience is a length of time and must not be negative; 0 sends every time at once")
        if self.patience is not None and self.strategy != "piggyback":
            raise StrategyError(
                f"strategy {self.strategy!r} lets no time wait for a row: leave out patience, or use piggyback"
            )

    @property
    def fixes_orders(self) -> bool:
        """Whether multi-way joins keep their planned orders. Re-evaluation builds its operators anew at every instant."""
        return not self.reorder or self.strategy == "re-evaluation"

    def for_engine(self) -> Options:
        """Return these options, if the engine can run their strategy."""
        check_strategy(self.strategy)
        return self


DEFAULT = Options()


@dataclass(frozen=True)
class Trigger:
    """When batches run: one after the other (the default), in every period, or until the available input is processed."""

    word: TriggerWord | None = None
    period: str | None = None

    @staticmethod
    def parse(trigger: str | None) -> Trigger:
        """Read a trigger: `available_now`, `once`, or a period such as "5 seconds"; Spark's `availableNow` also works."""
        match trigger:
            case None:
                return Trigger()
            case "available_now" | "availableNow":
                return Trigger("available_now")
            case "once":
                return Trigger("once")
            case str() if re.match(r"\s*\d", trigger):
                microseconds(trigger, "trigger")
                return Trigger(period=trigger)
        raise OptionError(
            f'trigger must be None, "available_now", "once" or a period such as "500 milliseconds", not {shown(trigger)}'
        )

    @property
    def milliseconds(self) -> int | None:
        """The period in milliseconds, rounded up."""
        return None if self.period is None else -(-microseconds(self.period, "trigger") // MILLISECOND)

    def check_heartbeats(self, names: Sequence[str]) -> None:
        """Refuse a trigger that waits for the end of the input, if a stream's heartbeat makes that endless."""
        if self.word is not None and names:
            raise OptionError(
                f"stream {names[0]} has a heartbeat, so its input has no end: use a period instead of trigger {self.word!r}"
            )


@dataclass(frozen=True)
class StartOptions:
    """Options of `Query.start`; `mode` None is the sink's own."""

    mode: Mode | None
    trigger: Trigger
    sink: dict[str, Any]

    @staticmethod
    def parse(mode: str | None, trigger: str | None, options: dict[str, Any]) -> StartOptions:
        """Check the mode and the trigger, which may also be given by a keyword of Spark's among the sink's options."""
        given = {name: value for name, value in options.items() if name in _SPARK_TRIGGERS and value}
        if len(given) + (trigger is not None) > 1:
            raise OptionError(f"give one trigger: trigger=..., or one of {', '.join(_SPARK_TRIGGERS)}")
        for name, value in given.items():
            trigger = check_text(name, value) if name == "processingTime" else name
        return StartOptions(
            None if mode is None else check_word("output mode", mode, MODES),
            Trigger.parse(trigger),
            {name: value for name, value in options.items() if name not in _SPARK_TRIGGERS},
        )
