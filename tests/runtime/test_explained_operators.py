"""EXPLAIN shows the operators that run: for oracle cases with all operators, those that the shards count, in their order."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from sash.physical.nodes import Operation
from sash.plan.options import STRATEGIES
from sash.runtime.local import LocalRun
from sash.testing import Result, replay
from tests.oracle.cases import CASES, CHANGING
from tests.oracle.check import run
from tests.oracle.sampling import covering

NAMES = {kind.__name__: kind.__name__ for kind in get_args(Operation)} | {
    "AntiJoin": "SemiJoin",
    "IntervalJoin": "IntervalJoin",
}
"""The operators' names in EXPLAIN, and in counts."""


def explained(text: str) -> list[str]:
    """The operators of the physical plan as stage.operator, without repetitions of a shared one."""
    section = text.split("\nPhysical plan: ")[1].split("\n\n", maxsplit=1)[0]
    stage, found = "", []
    for line in section.splitlines()[1:]:
        if heading := re.match(r"  Stage (\d+), ", line):
            stage = heading[1]
        elif (word := re.match(r" {4,}(\w+)", line)) and word[1] in NAMES and "(the one above)" not in line:
            found.append(f"{stage}.{NAMES[word[1]]}")
    return sorted(found)


SIMULATED = ("input-triggered", "clock-triggered", "piggyback")
"""Replay simulates these, and cannot simulate a SLIDE below a join with a non-retroactive relation."""


@pytest.mark.parametrize("strategy", [strategy for strategy in STRATEGIES if strategy != "auto"])
def test_explain_shows_what_runs(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other cases for every strategy, each set with all operators above all kinds of inputs."""
    counted: list[str] = []
    advance = LocalRun.advance

    def watched(self: LocalRun, *arguments: Any, **named: Any) -> object:
        changes = advance(self, *arguments, **named)
        counted[:] = self.counts
        return changes

    monkeypatch.setattr(LocalRun, "advance", watched)
    possible = [
        case
        for case in (*CASES, *CHANGING)
        if not (strategy in SIMULATED and case.name.startswith("nrr_slide"))
        if not (strategy == "re-evaluation" and case.endless)
    ]
    for case in covering(possible, 1, 71 * STRATEGIES.index(strategy)):
        result = run(case, replay, strategy=strategy, shards=2)
        assert isinstance(result, Result)
        ran = sorted(re.sub(r"\.\d+\.", ".", name) for name in counted)
        assert explained(result.explain()) == ran, case.name
