"""What EXPLAIN prints of a strategy: what expirations are learnt from, and the path that the time takes through the plan."""

from __future__ import annotations

from collections.abc import Sequence

from sash.physical.facts import expires_silently, must_expire
from sash.physical.nodes import Physical, PhysicalPlan, Stage, StreamLeg, operations
from sash.physical.strategies.registry import strategy_of
from sash.plan.tree import duration_text


def describe_strategy(plan: PhysicalPlan) -> list[str]:
    """What operators learn expirations from, at which intervals, the path of the time to them, and the strategy's note."""
    strategy = strategy_of(plan.strategy)
    lines = [
        f"Expiry is learnt from {strategy.learns}",
        *_intervals(plan.stages),
        *(f"Clock: {path}" for path in clock_paths(plan)),
    ]
    note = strategy.note(plan)
    return lines if note is None else [*lines, f"Note: {note}"]


def _intervals(stages: Sequence[Stage]) -> list[str]:
    """The intervals of re-execution and of probing, and how long a time waits for a row."""
    texts = (
        ("Re-executed at multiples of", [stage.tau for stage in stages]),
        ("Probed at multiples of", [stage.probe for stage in stages]),
        ("A time waits for a row for at most", [stage.patience for stage in stages]),
    )
    return [
        f"{text} {duration_text(length)}"
        for text, lengths in texts
        for length in dict.fromkeys(lengths)
        if length is not None
    ]


def clock_paths(plan: PhysicalPlan) -> list[str]:
    """From every source the operators that the time passes, up to where rows end by retractions.

    Operators that act on it are named plainly; those in parentheses purge their own state and forward it.
    """
    above: dict[int, list[tuple[str, Physical]]] = {}
    for stage in plan.stages:
        for node in operations(stage.root):
            name = node.name if must_expire(node) else f"({node.name})"
            for child in node.inputs:
                above.setdefault(id(child), []).append((name, node))
        for given in stage.inputs:
            if given.leaf.stage is not None:
                below = plan.stages[given.leaf.stage].root
                above.setdefault(id(below), []).append((f"Stage {stage.index}", given.leaf))

    def climb(node: Physical) -> list[list[str]]:
        if not expires_silently(node):
            return [[]]
        return [[name, *path] for name, higher in above.get(id(node), []) for path in climb(higher)]

    leaves = [given.leaf for stage in plan.stages for given in stage.inputs]
    streams = [number for number, leg in enumerate(plan.legs) if isinstance(leg, StreamLeg)]
    return [
        " -> ".join((f"Leg {number}", *path))
        for number in streams
        for leaf in leaves
        if leaf.leg == number
        for path in climb(leaf)
        if path
    ]
