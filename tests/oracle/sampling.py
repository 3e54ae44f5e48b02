"""A part of the oracle's cases that has every operator of their plans, above every kind of input, a number of times.

For tests of what operators do in plans: what matters is the plan, and most cases have one that other cases have as well.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module

import pytest

from sash.physical.nodes import Leaf, walk
from sash.planning import Planned
from sash.planning import plan_query as plan
from sash.testing import replay as engine
from tests.oracle.case import Case
from tests.oracle.check import run

Feature = tuple[str, ...]


class _PlannedError(Exception):
    """Ends a replay once its query is planned."""


@functools.cache
def features(case: Case) -> frozenset[Feature]:
    """The operators of the case's plans under two strategies, each with how the rows of its inputs end."""
    plans: list[Planned] = []

    def plan_only(*arguments: object, **options: object) -> Planned:
        plans.append(plan(*arguments, **options))  # type: ignore[arg-type]
        raise _PlannedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("sash.testing.replay"), "plan_query", plan_only)
        for strategy in ("auto", "direct"):
            with pytest.raises(_PlannedError):
                run(case, engine, strategy=strategy, shards=2)
    return frozenset(feature for planned in plans for feature in _of_plan(planned))


def _of_plan(planned: Planned) -> Iterator[Feature]:
    for stage in planned.physical.stages:
        for node in walk(stage.root):
            if not isinstance(node, Leaf):
                yield (type(node).__name__, *(below.output.expiry for below in node.inputs))


def covering(cases: Sequence[Case], times: int, first: int = 0) -> list[Case]:
    """Cases that have every feature so many times, if enough cases have it; those from number `first` on come first."""
    seen: Counter[Feature] = Counter()
    chosen = []
    for case in (*cases[first % len(cases) :], *cases[: first % len(cases)]):
        if any(seen[feature] < times for feature in features(case)):
            seen.update(features(case))
            chosen.append(case)
    return chosen
