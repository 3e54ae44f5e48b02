"""The physical planner: from an optimized logical plan to legs and stages, every decision made before anything runs.

Lowering chooses the operators, splitting puts them into stages, and the passes then decide, per stage and in this order,
how rows end between operators, which joins retract, what is shared and narrowed, and which buffers keep the rows. EXPLAIN
prints the plan that results, and the runtime runs it as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sash.optimizer.widen_joins import JoinColumns, WidenedJoins, widen_joins
from sash.physical.job_cost import job_cost
from sash.physical.lower import Legs, Lowering
from sash.physical.nodes import Leg, Output, Physical, PhysicalPlan, Stage
from sash.physical.passes.allow_strict_edges import allow_strict_edges
from sash.physical.passes.assign_buffers import assign_buffers
from sash.physical.passes.base import Pass, PlannerSettings
from sash.physical.passes.narrow_joins import narrow_joins
from sash.physical.passes.retract_from_joins import retract_from_joins
from sash.physical.passes.share_rows import share_rows
from sash.physical.regions import refuse_endless_windows
from sash.physical.retractions import with_expiration_column
from sash.physical.shared_joins import answer, retract_shared_joins
from sash.physical.sharing import shared_nodes
from sash.physical.stages import StageSplitter
from sash.physical.strategies.base import Placement, Strategy
from sash.physical.strategies.registry import strategy_of
from sash.physical.strict_stages import allow_strict_stages
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
    """The physical plan of one query: that of a job with this query alone, without a name."""
    return plan_job([("", node, options)], shards, [""] if with_expiration else [])


def plan_job(
    queries: Sequence[tuple[str, Node, Options]],
    shards: int | None = None,
    with_expiration: Collection[str] = (),
    shared: frozenset[Node] = frozenset(),
) -> PhysicalPlan:
    """The physical plan of queries that run together: names, optimized logical plans, and options.

    In the changes of every output, each row ends by a retraction. Operators that several queries need run once, in stages
    of their own; equal queries are outputs of one stage. `shards` is the number of shards that the plan will run on, where
    that is known. The answers of the queries named in `with_expiration` have a last column with the expiration time of each
    row, where that is known beforehand. `shared` are the canonical forms of joins that several queries read.
    """
    groups = [_Group.of(node, options) for _, node, options in queries]
    retracting: dict[_Group, frozenset[Distinct]] = dict.fromkeys(groups, frozenset())
    while True:
        legs = Legs()
        lowerings = {
            group: Lowering(group.options, shards, group.expire, given, legs, shared)
            for group, given in retracting.items()
        }
        lowered = [lowerings[group].lower_query(node) for group, (_, node, _) in zip(groups, queries, strict=True)]
        ending = [name in with_expiration for name, _, _ in queries]
        roots = _roots(groups, lowered, ending)
        sharing = [root for group, root in zip(groups, roots, strict=True) if group.shares_operators]
        splitter = StageSplitter(shards, shared_nodes(sharing))
        owners: list[_Group] = []
        outputs = []
        for group, root, (name, _, _) in zip(groups, roots, queries, strict=True):
            outputs.append(Output(name, splitter.split(root)))
            owners += [group] * (splitter.count - len(owners))
        if not splitter.unrepeatable:
            plan = PhysicalPlan(tuple(legs.all), tuple(splitter.stages()), tuple(outputs))
            plan = allow_strict_stages(plan, [group.settings for group in owners])
            stages = tuple(_planned(stage, group, legs.all) for stage, group in zip(plan.stages, owners, strict=True))
            return replace(plan, stages=stages)
        for group, lowering in lowerings.items():
            retracting[group] |= {logical for logical, made in lowering.distincts if id(made) in splitter.unrepeatable}


def share_joins(
    queries: Sequence[tuple[str, Node, Options]], shards: int | None, known: Mapping[str, JoinColumns]
) -> tuple[list[tuple[str, Node, Options]], WidenedJoins]:
    """The queries of a job, in which those with equal options share joins that differ in columns, where that pays.

    `known` has the columns of the joins of the job that it goes on from.
    """
    groups: dict[_Group, dict[str, Node]] = {}
    for name, node, options in queries:
        groups.setdefault(_Group.of(node, options), {})[name] = node

    def widened(group: _Group, plans: Mapping[str, Node]) -> WidenedJoins:
        def costs(some: Mapping[str, Node], shared: frozenset[Node]) -> float:
            return job_cost(plan_job([(name, node, group.options) for name, node in some.items()], shards, (), shared))

        return widen_joins(plans, known, costs)

    found = [widened(group, plans) for group, plans in groups.items() if group.shares_operators]
    plans = {name: plan for one in found for name, plan in one.plans.items()}
    shared = frozenset[Node]().union(*(one.shared for one in found))
    compared = tuple(join for one in found for join in one.compared)
    columns = {name: joins for one in found for name, joins in one.columns.items()}
    changed = [(name, plans.get(name, node), options) for name, node, options in queries]
    return changed, WidenedJoins(plans, shared, compared, columns)


@dataclass(frozen=True)
class _Group:
    """Queries whose operators may be the same: they have equal options, and Expire operators in the same places."""

    options: Options
    expire: Placement

    @staticmethod
    def of(node: Node, options: Options) -> _Group:
        named = replace(options, strategy="update-pattern-aware") if options.strategy == "auto" else options
        return _Group(named, _expire_placement(strategy_of(named.strategy), node))

    @property
    def strategy(self) -> Strategy:
        return strategy_of(self.options.strategy)

    @property
    def settings(self) -> PlannerSettings:
        return PlannerSettings(self.options, self.strategy)

    @property
    def shares_operators(self) -> bool:
        """Whether operators may be shared; not where their progress depends on the rows that reach them."""
        return self.strategy.synchronised and not self.strategy.by_rows_alone


def _roots(groups: Sequence[_Group], lowered: Sequence[Physical], ending: Sequence[bool]) -> list[Physical]:
    """The trees of all queries, in whose changes every row ends by a retraction; `ending` are those with expiration times."""
    joining = [
        number for number, group in enumerate(groups) if group.shares_operators and group.strategy.retracting_joins
    ]
    stamped = {id(node) for node, ends in zip(lowered, ending, strict=True) if ends}
    changed = dict(zip(joining, retract_shared_joins([lowered[number] for number in joining], stamped), strict=True))
    nodes = [changed.get(number, node) for number, node in enumerate(lowered)]
    shared = shared_nodes([node for group, node in zip(groups, nodes, strict=True) if group.shares_operators])
    made: dict[tuple[int, bool], Physical] = {}
    for group, node, ends in zip(groups, nodes, ending, strict=True):
        if (id(node), ends) not in made:
            root = with_expiration_column(node) if ends else None
            made[id(node), ends] = root or answer(node, shared, by_joins=group.strategy.retracting_joins)
    return [made[id(node), ends] for node, ends in zip(nodes, ending, strict=True)]


def _planned(stage: Stage, group: _Group, legs: Sequence[Leg]) -> Stage:
    """The stage with its strategy, and with all passes run."""
    if group.strategy.recomputes:
        refuse_endless_windows(stage.root, legs)
    root = _run_passes(stage, group.settings)
    options = group.options
    return replace(
        stage, root=root, strategy=group.strategy.name, tau=options.tau, probe=options.probe, patience=options.patience
    )


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
