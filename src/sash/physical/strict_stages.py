"""Edges between stages whose rows may end either way, by calendar or by retractions (paper 5, 5.3.2).

These are the edges between a semi or anti join of stamped rows and other stages that keep its rows one by one. Where a row
carries its expiration time, only a premature end is sent, and written to the log of the stage that reads it.

The reading stage has the rows in its log, as they were sent. So a stage that is built again from its live rows must know how
each was sent: a row's method is the one in use when it came, and its expiration time is that of a left row. This is not known
of the copies of an EXCEPT ALL, nor where rows do not come and expire at the same times again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sash.physical.channels import needs_snapshots
from sash.physical.facts import facts_of, is_repeatable
from sash.physical.nodes import Leaf, Operation, OutputEdge, Physical, PhysicalPlan, SemiJoin, Stage
from sash.physical.passes.allow_strict_edges import KeptRows
from sash.physical.passes.base import PlannerSettings, rebuild
from sash.physical.strict_edges import strict, strict_edge


def allow_strict_stages(plan: PhysicalPlan, settings: Sequence[PlannerSettings]) -> PhysicalPlan:
    """Make the edge of a stage strict if its rows may be sent either way to all stages that read it.

    `settings` are those of each stage. Stages with snapshots keep arrays of retracted rows, and updates that do not hold the
    clock back lose their times.
    """
    reading: dict[int, list[tuple[Stage, Leaf]]] = {}
    for stage in plan.stages:
        for given in stage.inputs:
            if given.leaf.stage is not None:
                reading.setdefault(given.leaf.stage, []).append((stage, given.leaf))

    def accepts(reader: Stage, leaf: Leaf) -> bool:
        return not leaf.follows and not needs_snapshots(plan, reader) and KeptRows(reader.root)(leaf)

    stages = list(plan.stages)
    changed: dict[int, OutputEdge] = {}
    answers = {output.stage for output in plan.outputs}
    for stage, found in zip(plan.stages, settings, strict=True):
        chooses = found.strategy.adaptive_expiration and not needs_snapshots(plan, stage)
        readers = reading.get(stage.index, ())
        if chooses and readers and stage.index not in answers and all(accepts(*reader) for reader in readers):
            root = _sent(stage.root, found.options.partitions)
            if root.expiry == "strict":
                stages[stage.index] = replace(stage, root=root)
                changed[stage.index] = root.output
    return replace(plan, stages=tuple(_reading(stage, changed) for stage in stages)) if changed else plan


def _sent(root: Physical, partitions: int | None) -> Physical:
    """The root of a stage with a strict edge, if it has the rows of a semi or anti join of rows that a stage built again has."""
    if isinstance(root, Leaf):
        return root
    if facts_of(root).passes_rows and len(root.inputs) == 1:
        child = _sent(root.inputs[0], partitions)
        if child.expiry != "strict":
            return root
        return replace(root, inputs=(child,), output=strict_edge(root, child.horizon))
    if not isinstance(root, SemiJoin) or root.inputs[0].expiry not in ("fifo", "calendar"):
        return root
    if not is_repeatable(root.inputs[0]):
        return root
    made = strict(root, partitions)
    assert isinstance(made, SemiJoin)
    assert made.ends is not None
    return replace(made, ends=replace(made.ends, sent=True))


def _reading(stage: Stage, changed: Mapping[int, OutputEdge]) -> Stage:
    """The stage over leaves with the edges of the stages that they read."""
    made: dict[int, Leaf] = {}
    for leaf in (given.leaf for given in stage.inputs):
        if leaf.stage is not None and leaf.stage in changed:
            made[id(leaf)] = replace(leaf, output=replace(changed[leaf.stage], schema=leaf.schema))
    if not made:
        return stage

    def change(_old: Operation, node: Operation) -> Physical:
        inputs = tuple(made.get(id(child), child) for child in node.inputs)
        return replace(node, inputs=inputs) if any(id(child) in made for child in node.inputs) else node

    inputs = tuple(replace(given, leaf=made.get(id(given.leaf), given.leaf)) for given in stage.inputs)
    return replace(stage, root=rebuild(stage.root, change), inputs=inputs)
