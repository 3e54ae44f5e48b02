"""EXPLAIN ANALYZE: what every operator did in a run, beside the planner's estimates.

Rates are per second of stream time. A row expires naturally at its expiration time, and prematurely when it is retracted
before: by a match of a negation, or by a later row of a count window. Premature expirations are counted where they begin.
Operators that keep only counts per value do not count those at an instant at which an input row also expires naturally.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sash.physical.explain import rounded
from sash.physical.facts import facts_of
from sash.physical.nodes import Operation, PhysicalPlan, operations
from sash.runtime.counts import Counts
from sash.runtime.current_choice import over_shards


@dataclass(frozen=True)
class Actual:
    """Figures of a run: counts and rows in state by operator (`stage.position.operator`), and bytes of state.

    `stages` are the bytes by stage, where they are known. `seconds` is the stream time over which rates are computed (None:
    unknown), and `before` are the counts at its start.
    """

    counts: Mapping[str, Counts]
    rows: Mapping[str, int]
    bytes: int
    stages: Mapping[int, int] = field(default_factory=dict)
    seconds: float | None = None
    before: Mapping[str, Counts] = field(default_factory=dict)


def remarks(plan: PhysicalPlan, actual: Actual) -> dict[int, list[str]]:
    """The lines that EXPLAIN ANALYZE adds to the plan, its stages and its operators, by identity."""
    over = f" over {rounded(actual.seconds)} s of stream time" if actual.seconds else ""
    lines: dict[int, list[str]] = {id(plan): [f"actual: {actual.bytes:,} bytes of state; rates{over or ' unknown'}"]}
    for stage in plan.stages:
        if stage.index in actual.stages:
            lines[id(stage)] = [f"actual: {actual.stages[stage.index]:,} bytes of state"]
        for name, node in zip(stage.operator_names, operations(stage.root), strict=True):
            choices = actual.counts.get(name, Counts()).current_choice
            lines[id(node)] = [_actual(name, node, actual), *_expected(node), *(c.text for c in over_shards(choices))]
    return lines


def _actual(name: str, node: Operation, actual: Actual) -> str:
    counts = actual.counts.get(name, Counts())
    parts = [
        f"actual: {_signed(counts.taken, counts.taken_negative)} in, {_signed(counts.given, counts.given_negative)} out"
    ]
    if actual.seconds:
        before = actual.before.get(name, Counts())
        inserted = (counts.given - counts.given_negative) - (before.given - before.given_negative)
        parts.append(f"{rounded(inserted / actual.seconds)}/s")
    parts.append(f"{actual.rows.get(name, 0):,} kept")
    if counts.expired:
        parts.append(f"{counts.expired:,} expired")
    if facts_of(node).retracts_early:
        parts.append(f"{counts.premature:,} premature")
    return "; ".join(parts)


def _signed(rows: int, negative: int) -> str:
    return f"{rows:,} ({negative:,} negative)" if negative else f"{rows:,}"


def _expected(node: Operation) -> list[str]:
    if node.expected is None:
        return []
    parts = [f"estimate: {rounded(node.expected.rate)}/s", f"{rounded(node.expected.kept)} kept"]
    if facts_of(node).retracts_early:
        parts.append(f"{rounded(node.expected.premature)}/s premature")
    return ["; ".join(parts)]
