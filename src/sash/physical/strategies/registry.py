"""Every execution strategy by its name (papers 1, 3 and 5)."""

from __future__ import annotations

from sash.physical.strategies.base import Strategy
from sash.physical.strategies.clock_triggered import CLOCK_TRIGGERED
from sash.physical.strategies.direct import DIRECT
from sash.physical.strategies.hybrid import HYBRID
from sash.physical.strategies.input_triggered import INPUT_TRIGGERED
from sash.physical.strategies.negative_tuple import NEGATIVE_TUPLE
from sash.physical.strategies.piggyback import PIGGYBACK
from sash.physical.strategies.re_evaluation import RE_EVALUATION
from sash.physical.strategies.time_message import TIME_MESSAGE
from sash.physical.strategies.time_probing import TIME_PROBING
from sash.physical.strategies.update_pattern_aware import UPDATE_PATTERN_AWARE

AUTO = UPDATE_PATTERN_AWARE

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        INPUT_TRIGGERED,
        CLOCK_TRIGGERED,
        TIME_PROBING,
        NEGATIVE_TUPLE,
        HYBRID,
        TIME_MESSAGE,
        PIGGYBACK,
        DIRECT,
        UPDATE_PATTERN_AWARE,
        RE_EVALUATION,
    )
}


def strategy_of(name: str) -> Strategy:
    """The strategy of that name; `auto` is the one that is best in general."""
    return AUTO if name == "auto" else STRATEGIES[name]
