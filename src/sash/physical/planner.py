"""The physical planner: from an optimized logical plan to legs and stages, every decision made before anything runs.

Lowering chooses the operators, splitting puts them into stages, and the passes then decide, per stage and in this order,
how rows end between operators, which joins retract, what is shared and narrowed, and which buffers keep the rows. EXPLAIN
prints the plan that results, and the runtime runs it as it is.
"""

from __future__ import annotations

from dataclasses import replace

from sash.physical.lower import Lowering
from sash.physical.nodes import Output, Physical, PhysicalPlan, Stage
from sash.physical.passes.allow_strict_edges import allow_strict_edges
from sash.physical.passes.assign_buffers import assign_buffers
from sash.physical.passes.base import Pass, PlannerSettings
from sash.physical.passes.narrow_joins import narrow_joins
from sash.physical.passes.retract_from_joins import retract_from_joins
from sash.physical.passes.share_rows import share_rows
from sash.physical.retractions import with_expiration_column, with_retractions
from sash.physical.stages import StageSplitter
from sash.physical.strategies.base import Placement, Strategy
from sash.physical.strategies.registry import strategy_of
from sash.plan.nodes import Distinct, Join, Node, walk
from sash.plan.options import DEFAULT, Options

PASSES: tuple[Pass, ...] = (
    allow_strict_edges,
    retract_from_joins,
    share_rows,
    narrow_joins,
    assign_buffers,
)


def plan_physical(
    node: Node, shards: int | None = None, options: Options = DEFAULT, *, with_expiration: bool = False
) -> PhysicalPlan:
    """The physical plan of an optimized logical plan. In the changes of its last stage every row ends by a retraction.

    `shards` is the number of shards that it will run on, where that is known. With `with_expiration`, the answer has a last
    column with the expiration time of each row, where that is known beforehand.
    """
    strategy = strategy_of(options.strategy)
    expire = _expire_placement(strategy, node)
    retracting: frozenset[Distinct] = frozenset()
    while True:
        lowering = Lowering(options, shards, expire, retracting)
        lowered = lowering.lower(node)
        root = (with_expiration_column(lowered) if with_expiration else None) or with_retractions(
            lowered, by_joins=strategy.retracting_joins
        )
        splitter = StageSplitter(shards)
        stages = splitter.split(root)
        if not splitter.unrepeatable:
            settings = PlannerSettings(options, strategy)
            planned = tuple(
                replace(stage, root=_run_passes(stage, settings), strategy=strategy.name, tau=options.tau)
                for stage in stages
            )
            return PhysicalPlan(tuple(lowering.legs), planned, (Output("", len(planned) - 1),))
        retracting |= {logical for logical, made in lowering.distincts if id(made) in splitter.unrepeatable}


def _expire_placement(strategy: Strategy, node: Node) -> Placement:
    """Where the strategy puts Expire in this plan: without a join, it cannot be pulled up over one."""
    if strategy.expire == "above joins" and not any(isinstance(below, Join) for below in walk(node)):
        return "bottom"
    return strategy.expire


def _run_passes(stage: Stage, settings: PlannerSettings) -> Physical:
    root = stage.root
    for run in PASSES:
        root = run(root, settings)
    return root
