"""Where a query's time goes, strategy by strategy: selections, each operator, and what is done around them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from bench.paper5.measure import BATCH, Timed, side_by_side
from bench.paper5.queries import STRATEGIES, Case
from bench.paper5.trace import Trace
from sash.plan.options import Options, check_strategy
from sash.planning import plan_query

LEGS, REST = "selections", "around"


def breakdown(case: Case, trace: Trace, window: int, batch: int = BATCH) -> dict[str, dict[str, float]]:
    """Microseconds per row of input by strategy and part, once windows are full; `around` is what no other part is."""
    only = trace.only(case.links)
    text = case.text(window, trace.unselective if case.unselective else trace.selective)
    made = {}
    for name in STRATEGIES:
        spent: defaultdict[str, float] = defaultdict(float)
        run = Timed(plan_query(text, trace.catalog, shards=1, options=Options(check_strategy(name))))
        _watch(run, spent)
        side_by_side([run], only, window, batch)
        rows = max(1, sum(run.rows))
        parts = {part: round(1e6 * seconds / rows, 4) for part, seconds in sorted(spent.items())}
        made[name] = parts | {REST: round(1e6 * (sum(run.times) - sum(spent.values())) / rows, 4)}
    return made


def _watch(run: Timed, spent: defaultdict[str, float]) -> None:
    """Note what legs and operators of the run take, in the batches that are measured."""
    for leg in run.run.leg_runners:
        vars(leg)["run"] = _noted(leg.run, LEGS, run, spent)
    for operator in run.run.operators:
        vars(operator)["process"] = _noted(operator.process, type(operator).__name__, run, spent)


def _noted(work: Callable[..., Any], part: str, run: Timed, spent: defaultdict[str, float]) -> Callable[..., Any]:
    def noted(*given: Any) -> Any:
        begun = time.process_time()
        result = work(*given)
        if run.measuring:
            spent[part] += time.process_time() - begun
        return result

    return noted
