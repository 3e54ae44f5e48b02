"""EXPLAIN ANALYZE: what every operator of a plan did in a run, beside what the planner expected of it.

Rates are per second of stream time. A row expires naturally when its time is up, and prematurely when something else
takes it back: a match of a negation, a row that pushes it out of a count window. Such ends are counted where they begin;
where only counts per value are kept, none of those at one instant with a natural end of an input row is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sash.physical.explain import rounded
from sash.physical.nodes import Operation, PhysicalPlan, walk
from sash.runtime.in_force import over_shards
from sash.runtime.shard import Counts

_TAKING_BACK = frozenset({"CountWindow", "ExceptAll", "SemiJoin", "SetOperation"})
"""Where premature ends begin."""


@dataclass(frozen=True)
class Actual:
    """What a run has done: counts and rows in state by operator (`stage.place.operator`), and bytes of state.

    `stages` are the bytes by stage, where that is known. `seconds` is the stream time over which rates are taken, None if
    it is not known, and `before` what had been counted when it began.
    """

    counts: Mapping[str, Counts]
    rows: Mapping[str, int]
    bytes: int
    stages: Mapping[int, int] = field(default_factory=dict)
    seconds: float | None = None
    before: Mapping[str, Counts] = field(default_factory=dict)


def remarks(plan: PhysicalPlan, actual: Actual) -> dict[int, list[str]]:
    """What there is to say about the plan, its stages and its operators, by identity."""
    over = f" over {rounded(actual.seconds)} s of stream time" if actual.seconds else ""
    said: dict[int, list[str]] = {
        id(plan): [f"actual: {actual.bytes:,} bytes of state; rates{over or ' are not known'}"]
    }
    for stage in plan.stages:
        if stage.index in actual.stages:
            said[id(stage)] = [f"actual: {actual.stages[stage.index]:,} bytes of state"]
        operations = [node for node in walk(stage.root) if isinstance(node, Operation)]
        for place, node in enumerate(operations):
            name = f"{stage.index}.{place}.{node.operator}"
            shards = actual.counts.get(name, Counts()).in_force
            said[id(node)] = [_actual(name, actual), *_expected(node), *(found.text for found in over_shards(shards))]
    return said


def _actual(name: str, actual: Actual) -> str:
    counts = actual.counts.get(name, Counts())
    parts = [
        f"actual: {_signed(counts.taken, counts.taken_negative)} in, {_signed(counts.given, counts.given_negative)} out"
    ]
    if actual.seconds:
        before = actual.before.get(name, Counts())
        came = (counts.given - counts.given_negative) - (before.given - before.given_negative)
        parts.append(f"{rounded(came / actual.seconds)}/s")
    parts.append(f"{actual.rows.get(name, 0):,} kept")
    if counts.expired:
        parts.append(f"{counts.expired:,} expired")
    if name.rpartition(".")[2] in _TAKING_BACK:
        parts.append(f"{counts.premature:,} premature")
    return "; ".join(parts)


def _signed(rows: int, negative: int) -> str:
    return f"{rows:,} ({negative:,} negative)" if negative else f"{rows:,}"


def _expected(node: Operation) -> list[str]:
    if node.expected is None:
        return []
    parts = [f"estimate: {rounded(node.expected.rate)}/s", f"{rounded(node.expected.kept)} kept"]
    if node.operator in _TAKING_BACK:
        parts.append(f"{rounded(node.expected.premature)}/s premature")
    return ["; ".join(parts)]
